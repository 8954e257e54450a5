"""What a page of HTML says, as text: for models, and for agents that read pages.

Marks are told from words as browsers do (HTML, 13.2.5): each goes on to where it ends, or to the end of the page. So all of a page
is read once, whoever wrote it. `html.parser` reads what is not closed again and again (CVE-2025-6069, on Pythons of before): a
megabyte of `<a ` takes it hours.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

_UNSEEN = frozenset("script style template noscript head svg iframe nav dialog".split())
_BLOCKS = frozenset(
    "p div br tr li h1 h2 h3 h4 h5 h6 table ul ol dl dt dd section article aside header footer main blockquote pre hr title figure "
    "figcaption caption details summary address form fieldset".split()
)
_FIELDS = frozenset("legend select optgroup option textarea button".split())
"""What stands in a line of its own here, and ends no paragraph."""
_READINGS = frozenset("rt rp".split())
"""What stands over words, and in none of them."""

_CLOSED_BY_THE_NEXT = frozenset("p li dt dd tr td th option".split())
"""What ends where the next of its kind begins, and a paragraph where any block does, without saying so (HTML, 13.1.2.4)."""
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_WITHOUT_MARKS = frozenset("script style textarea title iframe noembed noframes xmp".split())
"""In what nothing is a mark but its own end (HTML, 13.1.2)."""
_NOT_SHOWN = re.compile(r"(?i)display\s*+:\s*+none|visibility\s*+:\s*+hidden")

_BLANK = r" \t\n\f\r"
_ATTRIBUTE = (
    rf"([^{_BLANK}/>][^{_BLANK}/>=]*+)"
    rf"(?:[{_BLANK}]*+=[{_BLANK}]*+(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^{_BLANK}>]*+)))?+"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_MARK = re.compile(
    rf"<(?P<end>/?)(?P<tag>[a-zA-Z][^{_BLANK}/>]*+)(?P<said>(?:[{_BLANK}/]*+{_ATTRIBUTE})*+)(?P<closed>[{_BLANK}/]*+)(?:>|\Z)"
    r"|<!--(?:-?>|(?s:.*?)(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)|</(?![a-zA-Z])[^>]*+(?:>|\Z)"
)
"""A tag, or what is no text either: comments, declarations, and ends of nothing."""
_ENDS = {tag: re.compile(rf"(?i)</{tag}(?=[{_BLANK}/>])") for tag in sorted(_WITHOUT_MARKS)}


class _Words:
    """Collects what a page shows, without menus and scripts."""

    def __init__(self, before_cells: str) -> None:
        self.parts: list[str] = []
        self._before_cells = before_cells
        self._unseen = self._as_written = 0
        self._hidden = list[str]()
        """The elements that are open from the outermost on which its author hides."""
        self._hidden_of = Counter[str]()
        """How many of them are of a kind."""

    def begin(self, tag: str, *, hides: bool) -> None:
        """Note what is not seen, and where a line ends."""
        if self._hidden in ([tag], ["p"]) and self._hidden[0] in _CLOSED_BY_THE_NEXT and tag in _BLOCKS - _VOID | {*self._hidden}:
            self._show_behind(self._hidden[0])
        if tag not in _VOID and (self._hidden or hides):
            self._hidden.append(tag)
            self._hidden_of[tag] += 1
        self._unseen += tag in _UNSEEN
        self._as_written += tag == "pre"
        self._add(self._before_cells if tag in ("td", "th") else _parted(tag))

    def end(self, tag: str) -> None:
        """Note where what is not seen ends, and where a line does."""
        if self._hidden_of[tag]:
            self._show_behind(tag)
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._as_written = max(0, self._as_written - (tag == "pre"))
        self._add(_parted(tag))

    def say(self, text: str) -> None:
        """Keep what is seen."""
        if not self._unseen and not self._hidden:
            said = _decoded(text)
            self._add(said if self._as_written else re.sub(r"\s+", " ", said))

    def _show_behind(self, tag: str) -> None:
        """End the innermost hidden element of a kind, with those within it."""
        ended = None
        while ended != tag:
            ended = self._hidden.pop()
            self._hidden_of[ended] -= 1

    def _add(self, text: str) -> None:
        self.parts.append(text.replace("\u00ad", ""))  # where a word may be parted at the end of a line


def text_of_html(page: str, before_cells: str = " | ") -> str:
    r"""Return what a page says, a block a line; `before_cells` stands before each cell of a table, whose row is a block."""
    words, at = _Words(before_cells), 0
    while mark := _MARK.search(page, at):
        words.say(page[at : mark.start()])
        at = mark.end()
        if mark["tag"] is None:
            continue
        tag = mark["tag"].lower()
        if mark["end"]:
            words.end(tag)
            continue
        words.begin(tag, hides=_hides(mark["said"]))
        if tag in _WITHOUT_MARKS:
            end = _ENDS[tag].search(page, at)
            words.say(page[at : end.start() if end else None])
            at = end.start() if end else len(page)
        elif tag == "svg" and mark["closed"].endswith("/"):  # of HTML's own elements none ends where it begins
            words.end(tag)
    words.say(page[at:])
    lines = (" ".join(line.split()) for line in "".join(words.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _hides(attributes: str) -> bool:
    return any(
        name.lower() == "hidden" or (name.lower() == "style" and _NOT_SHOWN.search(_decoded("".join(said))) is not None)
        for name, *said in (attribute.groups("") for attribute in _ATTRIBUTES.finditer(attributes))
    )


def _decoded(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a letter by a number of thousands of digits
        return text


def _parted(tag: str) -> str:
    return "\n" if tag in _BLOCKS or tag in _FIELDS else " " * (tag in _READINGS)
