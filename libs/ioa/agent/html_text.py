"""What a page of HTML says, as text: for models, and for agents that read pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
_NOT_SHOWN = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")


def _hides(attribute: tuple[str, str | None]) -> bool:
    name, said = attribute
    return name == "hidden" or (name == "style" and _NOT_SHOWN.search(said or "") is not None)


def _parted(tag: str) -> str:
    return "\n" if tag in _BLOCKS or tag in _FIELDS else " " * (tag in _READINGS)


class _Words(HTMLParser):
    """Collects what a page shows, without menus and scripts."""

    def __init__(self, before_cells: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._before_cells = before_cells
        self._unseen = self._as_written = 0
        self._hidden = list[str]()
        """The elements that are open from the outermost on which its author hides."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is not seen, and where a line ends."""
        if self._hidden in ([tag], ["p"]) and self._hidden[0] in _CLOSED_BY_THE_NEXT and tag in _BLOCKS - _VOID | {*self._hidden}:
            self._hidden.clear()
        if tag not in _VOID and (self._hidden or any(map(_hides, attrs))):
            self._hidden.append(tag)
        self._unseen += tag in _UNSEEN
        self._as_written += tag == "pre"
        self._add(self._before_cells if tag in ("td", "th") else _parted(tag))

    def handle_endtag(self, tag: str) -> None:
        """Note where what is not seen ends, and where a line does."""
        if tag in self._hidden:
            del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._as_written = max(0, self._as_written - (tag == "pre"))
        self._add(_parted(tag))

    def handle_data(self, data: str) -> None:
        """Keep what is seen."""
        if not self._unseen and not self._hidden:
            self._add(data if self._as_written else re.sub(r"\s+", " ", data))

    def _add(self, text: str) -> None:
        self.parts.append(text.replace("\u00ad", ""))  # where a word may be parted at the end of a line


def text_of_html(page: str, before_cells: str = " | ") -> str:
    r"""Return what a page says, a block a line; `before_cells` stands before each cell of a table, whose row is a block."""
    words = _Words(before_cells)
    words.feed(page)
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.parts).split("\n"))
    return "\n".join(line for line in lines if line)
