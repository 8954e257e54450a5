"""Count the words, lines or characters of a text file."""

import re

from ioa import Agent, DeclinedError, TaskContext
from request import named_file, read_text

agent = Agent(
    "text-analyst", description="Counts the words, the lines or the characters of a file with text.",
    skills=["word count of a text", "line count of a file"], examples=[
        "count of words in FILE", "count of words in notes.txt", "count of lines in app.log", "count of characters in letter.md",
        "count of words in minutes.txt", "count of lines in the text",
    ], tags=["text", "words"], declines=True, may_team_up=False,
)  # fmt: skip
_FORM = re.compile(r"count of (?P<what>words|lines|characters) in (?P<file>\S.*)", re.IGNORECASE)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Count in one file. Words are separated by blanks; a line that ends the file without a line break counts."""
    asked = _FORM.fullmatch(task.strip())
    if asked is None:
        raise DeclinedError("This is not a count of a text.", hint="Write 'count of words in FILE', or lines, or characters.")
    file = named_file(asked["file"], ctx)
    text, what = read_text(file), asked["what"].lower()
    count = {"words": lambda: len(text.split()), "lines": lambda: len(text.splitlines()), "characters": lambda: len(text)}[what]()
    return f"{what} in {file.name} = {count}"
