"""The prompts as versioned assets, and how data of others is put into them.

A version of the prompts is a folder; a change of wording that changes what a model decides is a new folder, so that runs can be
compared. Data is fenced by tags, and what looks like such a tag inside the data is defused, each letter by one letter, so that
positions in a text stay what they are.
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template
from typing import Literal, get_args

VERSION = "v2"
Tag = Literal[
    "agent", "answer", "board", "brief", "call", "closed", "contacts", "found", "goal", "inputs", "instructions", "memory",
    "message", "need", "observation", "open_tasks", "part", "read", "refusals", "rejected", "result", "said", "task", "team",
    "thought", "votes",
]  # fmt: skip
TAGS: tuple[Tag, ...] = get_args(Tag)
"""All tags that data is fenced by, so that data cannot write one."""
_TAG = re.compile(rf"<(\s*+/?+\s*+(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)

_UNSEEN = re.compile("[\u00ad\u061c\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Letters without a shape (Unicode category Cf)."""


class Prompts:
    """The prompts, read once."""

    def __init__(self) -> None:
        folder = files("ioa.agent.model").joinpath("prompts", VERSION)
        self._texts = {entry.name.removesuffix(".md"): entry.read_text("utf-8") for entry in folder.iterdir() if entry.is_file()}

    def fill(self, name: str, **values: object) -> str:
        """Fill a prompt's placeholders. Values are put in as they are and never read for placeholders themselves."""
        filled = Template(self._texts[name]).substitute({key: str(value) for key, value in values.items()})
        return re.sub(r"\n{3,}", "\n\n", filled).strip()


def fenced(tag: Tag, text: str, attributes: str = "") -> str:
    """Put data between tags it cannot close; nothing at all for no text."""
    return f"<{tag}{f' {attributes}' if attributes else ''}>\n{text}\n</{tag}>" if text else ""


def defused(text: str) -> str:
    """Take the force out of anything in the data that looks like one of the prompts' own tags.

    Letters that nobody sees could stand within a tag, which a model reads nevertheless: in a text that holds any no bracket opens.
    """
    return text.replace("<", "‹") if _UNSEEN.search(text) else _TAG.sub(r"‹\1", text)


def in_one_line(text: str) -> str:
    """Return a text of others as a part of a line."""
    return defused(" ".join(text.split()))


def cut(text: str, most_bytes: int, what: str = "") -> str:
    """Keep the beginning and the end of a text that is too long, with a mark between them that says how to see the rest.

    Args:
        text: What may be cut.
        most_bytes: What it may take up, the mark included.
        what: What READ calls the text; empty if it cannot be read.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= most_bytes:
        return text
    room = max(0, most_bytes - _MARK_BYTES)
    head = data[: room - room // 3].decode("utf-8", "ignore")
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore") if room // 3 else ""
    where = f": READ {what} from {len(head)}" if what else ""
    return f"{head} [… {len(text) - len(head) - len(tail):,} of {len(text):,} characters{where} …] {tail}"


_MARK_BYTES = 120
