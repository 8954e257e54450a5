"""What others wrote, fenced by tags where a language model reads it: what looks like such a tag inside is defused.

Each letter is replaced by one letter, so that positions in a text stay what they are.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

Tag = Literal[
    "agent", "answer", "board", "brief", "call", "closed", "contacts", "found", "goal", "inputs", "instructions", "memory",
    "message", "need", "observation", "open_tasks", "part", "read", "refusals", "rejected", "result", "said", "task", "team",
    "thought", "votes",
]  # fmt: skip
TAGS: tuple[Tag, ...] = get_args(Tag)
"""All tags that data is fenced by, so that data cannot write one."""
_TAG = re.compile(rf"<(?=\s*+/?+\s*+(?=[{''.join(tag[0] for tag in TAGS)}])(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
"""What begins as no tag does is passed over before each of them is tried, which takes twenty times as long."""

_UNSEEN = re.compile("[\u00ad\u061c\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Letters without a shape (Unicode category Cf)."""


def fenced(tag: Tag, text: str, attributes: str = "") -> str:
    """Put data between tags it cannot close; nothing at all for no text."""
    return f"<{tag}{f' {attributes}' if attributes else ''}>\n{text}\n</{tag}>" if text else ""


def defused(text: str) -> str:
    """Take the force out of anything in the data that looks like one of the prompts' own tags.

    Letters that nobody sees could stand within a tag, which a model reads nevertheless: in a text that holds any no bracket opens.
    """
    return text.replace("<", "‹") if _UNSEEN.search(text) else _TAG.sub("‹", text)


def in_one_line(text: str) -> str:
    """Return a text of others as a part of a line."""
    return defused(" ".join(text.split()))
