"""Fences around untrusted text in prompts: tags that the text itself cannot contain.

Replacements keep the length of a text, and so its positions.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

Tag = Literal[
    "agent", "answer", "board", "brief", "call", "contacts", "found", "goal", "inputs", "instructions",
    "memory", "message", "need", "offer", "open_tasks", "part", "read", "refusals", "rejected", "result",
    "said", "task", "team", "votes",
]  # fmt: skip
TAGS: tuple[Tag, ...] = get_args(Tag)
"""All tags of fences; data cannot contain them."""
_TAG = re.compile(rf"<(?=\s*+/?+\s*+(?=[{''.join(tag[0] for tag in TAGS)}])(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
"""The first letter is compared before all tags, which is twenty times as fast."""

_UNSEEN = re.compile("[\u00ad\u061c\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Invisible characters (Unicode category Cf)."""


def fenced(tag: Tag, text: str, attributes: str = "") -> str:
    """Return a text between tags that it cannot close; empty for an empty text."""
    return f"<{tag}{f' {attributes}' if attributes else ''}>\n{text}\n</{tag}>" if text else ""


def defused(text: str) -> str:
    """Replace the bracket of each tag of fences in a text; of every bracket, if the text contains invisible characters.

    A model reads a tag that contains invisible characters.
    """
    return text.replace("<", "‹") if _UNSEEN.search(text) else _TAG.sub("‹", text)


def in_one_line(text: str) -> str:
    """Return an untrusted text in one line."""
    return defused(" ".join(text.split()))
