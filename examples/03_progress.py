"""An agent that takes its time: it tells how far it is, and stops when nobody wants its result any more."""

from ioa import Agent, TaskContext

agent = Agent("prime-finder", description="Finds the prime numbers below a number.", examples=["primes below 1000"])


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """List the primes below the last word of the task."""
    primes, number, bound = list[int](), 1, int(task.split()[-1])
    while not ctx.cancelled and (number := number + 1) < bound:
        ctx.progress(f"tried {number}", number / bound)
        primes += [number] if all(number % prime for prime in primes) else []
    return ", ".join(map(str, primes))
