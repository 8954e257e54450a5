"""The prompts as versioned files, and texts of others as parts of them.

A new wording that changes the decisions of a model is a new folder, so that runs can be compared.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from string import Template

from ioa.foreign_text import defused, in_one_line

VERSION = "v2"
_MARK_BYTES = 120


@cache
def _template(name: str) -> Template:
    return Template(files("ioa.agent.model").joinpath("prompts", VERSION, f"{name}.md").read_text("utf-8"))


def fill(name: str, **values: object) -> str:
    """Fill the placeholders of a prompt. Placeholders within the values are not filled."""
    filled = _template(name).substitute({key: str(value) for key, value in values.items()})
    return re.sub(r"\n{3,}", "\n\n", filled).strip()


def below(*parts: str) -> str:
    """Put parts below each other, without empty ones."""
    return "\n".join(filter(None, parts))


def cut(text: str, most_bytes: int, what: str = "") -> str:
    """Keep the beginning and the end of a text that is too long, with a mark that states how to read the rest.

    Args:
        text: The text.
        most_bytes: Maximum bytes of the result, including the mark.
        what: The name by which READ returns the text; empty if it cannot be read.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= most_bytes:
        return text
    room = max(0, most_bytes - _MARK_BYTES)
    head = defused(data[: room - room // 3].decode("utf-8", "ignore"))  # a cut word can be a tag
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore")
    where = f": READ {what} from {len(head)}" if what else ""
    return f"{head} [… {len(text) - len(head) - len(tail):,} of {len(text):,} characters{where} …] {tail}"


def excerpt(text: str, most_bytes: int, what: str = "") -> str:
    """Defuse a text of others and cut it."""
    return cut(defused(text), most_bytes, what)


def line_of(text: str, most_bytes: int) -> str:
    """Return a text of others as part of a line, cut."""
    return cut(in_one_line(text), most_bytes)
