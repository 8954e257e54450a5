"""Untrusted text: control characters become visible on terminals, and fences in prompts are tags that the text cannot contain.

Cards, messages, results, file names and errors come from other agents and users. Control characters could set the terminal's title,
write its clipboard, overwrite earlier lines, or reverse the reading order.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

_UNFIT = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f"  # C0 and DEL, without tab and line feed
    "\x80-\x9f"  # C1, of which a terminal takes CSI and OSC as one character
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # lone surrogates, which no stream can encode
    "]"
)
_PICTURES, _DELETE, _PICTURE_OF_DELETE, _REPLACEMENT = 0x2400, 0x7F, "\u2421", "\ufffd"
_LINE_BREAKS = str.maketrans({"\n": "\u240a", "\t": "\u2409"})
_BLANKS = re.compile(r"\s{2,}")

CONTINUED = "    │ "
"""Start of each continuation line."""


def shown(text: str) -> str:
    """Replace each control character: `␛` for escape, `\ufffd` without a picture. Lines, tabs and the length stay."""
    return _UNFIT.sub(_picture, text)


def shown_in_line(text: str) -> str:
    """Return a text as a part of a line: without line breaks, and without runs of blanks."""
    return _BLANKS.sub(" ", shown_name(text))


def shown_name(text: str) -> str:
    """Return a name as a part of a line: without line breaks, and with its blanks."""
    return shown(text).translate(_LINE_BREAKS)


def continued(text: str) -> str:
    """Mark the continuation lines of a text, so that they do not look like lines of another speaker."""
    return f"\n{CONTINUED}".join(text.splitlines())


def escaped_json(document: str) -> str:
    r"""Escape control characters of a JSON document as `\uXXXX`, which does not change its value."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < ord(" "):
        return chr(_PICTURES + code)
    return _PICTURE_OF_DELETE if code == _DELETE else _REPLACEMENT


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
