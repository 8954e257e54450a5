"""Text that somebody else wrote, made fit to be shown to a person.

Cards, messages, results, file names, errors and logs come from whoever joined the system. A terminal obeys some characters instead
of showing them: they set its title, write its clipboard, move its cursor over what was said before, or turn the reading order
round. Here such a character becomes a visible one. And what is too long for a row goes on in the next one, where it would look like
a line of its own if nothing marked it.
"""

from __future__ import annotations

import re

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
"""Begins each row in which words of somebody else go on."""


def shown(text: str) -> str:
    """Make each control character visible: `␛` for escape, `\ufffd` for what has no picture. Lines, tabs and its length stay."""
    return _UNFIT.sub(_picture, text)


def shown_in_line(text: str) -> str:
    """Do the same to a name or a reason that stands within a line: it cannot begin another one, nor fill up its row with blanks."""
    return _BLANKS.sub(" ", shown_name(text))


def shown_name(text: str) -> str:
    """Do the same to a name by which something is found, or saved: its blanks stay."""
    return shown(text).translate(_LINE_BREAKS)


def continued(text: str) -> str:
    """Mark the further lines of what somebody wrote, who is named before it: none is taken for somebody else's, or for our own."""
    return f"\n{CONTINUED}".join(text.splitlines())


def escaped_json(document: str) -> str:
    r"""Write such characters of a JSON document as `\uXXXX`, which is the same document."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < ord(" "):
        return chr(_PICTURES + code)
    return _PICTURE_OF_DELETE if code == _DELETE else _REPLACEMENT
