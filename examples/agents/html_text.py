"""Readable text of an HTML file: what a reader would read, without menus, scripts and styling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import Tag

_NOISE = "script style noscript template svg iframe form nav aside button dialog".split()
_HEADINGS = "h1 h2 h3 h4 h5 h6".split()
_BLOCKS = [*_HEADINGS, *"p li blockquote pre td th dt dd figcaption caption summary".split()]


@dataclass(frozen=True)
class Page:
    """A page as text: paragraphs apart by blank lines; its title, headings and links (text and address)."""

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def read_html(html: str) -> Page:
    """Extract a page's title, readable text, headings and links."""
    from bs4 import BeautifulSoup  # here, since an agent that has nothing to do yet should not take 4 MB for it

    soup = BeautifulSoup(html, "html.parser")
    title = _text(soup.title) if soup.title else ""
    links = dict.fromkeys(f"{_text(link)} ({link['href']})" for link in soup.find_all("a", href=True))
    for tag in soup.find_all(_NOISE):
        tag.decompose()
    body = soup.find("main") or soup.body or soup
    headings = tuple(filter(None, map(_text, body.find_all(_HEADINGS))))
    blocks = [tag for tag in body.find_all(_BLOCKS) if tag.find_parent(("p", "li", "blockquote", "td", "th", "pre")) is None]
    text = "\n\n".join(filter(None, (f"- {_text(tag)}" if tag.name == "li" and _text(tag) else _text(tag) for tag in blocks)))
    if len(text) < len(_text(body)) // 2:  # a page of bare <div>s
        text = "\n\n".join(" ".join(line.split()) for line in body.get_text("\n").splitlines() if line.strip())
    return Page(text, title, headings, tuple(links))


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split()).replace(" ,", ",").replace(" .", ".")
