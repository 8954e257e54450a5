"""The smallest agent: a card and a function. `ioa agent run examples/01_hello.py:agent` joins it to a running system."""

from ioa import Agent

agent = Agent("hello", description="Greets people by name.", examples=["greet Ada", "say hello to Bob"])


@agent.task
def run(task: str) -> str:
    """Greet whoever the task names last."""
    return f"Hello, {task.split()[-1].strip('.!?')}!"
