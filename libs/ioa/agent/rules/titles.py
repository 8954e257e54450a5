"""Short names for tasks, in the user's words."""

from __future__ import annotations

import re

MAX_TITLE_CHARS = 90


def title_of(task_desc: str) -> str:
    """Shorten a task to one line that starts with a capital letter and ends without a full stop."""
    line = " ".join(task_desc.split()).rstrip(" .,;:")
    if len(line) > MAX_TITLE_CHARS:
        cut = line[:MAX_TITLE_CHARS]
        line = (cut.rsplit(" ", 1)[0] if " " in cut else cut) + " …"
    return line[:1].upper() + line[1:]


def same_words(first: str, second: str) -> bool:
    """Whether two texts ask for the same thing in the same words."""
    return _words(first) == _words(second)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
