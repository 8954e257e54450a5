"""Short names for tasks, in the user's words."""

from __future__ import annotations

import re

from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS

MAX_TITLE_CHARS = 90


def title_of(task_desc: str) -> str:
    """Shorten a task to one line that starts with a capital letter and ends without a full stop."""
    line = as_long_as_a_title(" ".join(task_desc[:MAX_READ_CHARS].split()).rstrip(" .,;:"))
    return line[:1].upper() + line[1:]


def as_long_as_a_title(line: str) -> str:
    """Cut a line behind a word if it is longer than a title."""
    if len(line) <= MAX_TITLE_CHARS:
        return line
    cut = line[:MAX_TITLE_CHARS]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut) + " …"


def same_words(first: str, second: str) -> bool:
    """Whether two texts ask for the same thing in the same words."""
    return _words(first) == _words(second)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
