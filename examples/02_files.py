"""An agent that reads the goal's files and makes one of its own."""

from ioa import Agent, TaskContext

agent = Agent("line-sorter", description="Sorts the lines of text files.", examples=["sort the lines of names.txt"])


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Attach each file again, with its lines in order."""
    for file in ctx.inputs:
        ctx.artifact(f"sorted-{file.name}", "\n".join(sorted(file.path.read_text().splitlines())))
    return f"Sorted {len(ctx.inputs)} files."
