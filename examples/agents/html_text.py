"""Readable text of a web page: what a reader would read, without menus, scripts and styling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from bs4 import Tag

_NOISE = "script style noscript template svg iframe form nav aside button dialog".split()
_HEADINGS = "h1 h2 h3 h4 h5 h6".split()
_BLOCKS = [*_HEADINGS, *"p li blockquote pre td th dt dd figcaption caption summary".split()]


@dataclass(frozen=True)
class Page:
    """A page as text: paragraphs apart by blank lines, headings with their level, links with their text and full address."""

    title: str
    text: str
    headings: tuple[tuple[int, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def read_html(html: str | bytes, base_url: str = "") -> Page:
    """Extract a page's title, readable text, headings and links."""
    from bs4 import BeautifulSoup  # here, since an agent that has nothing to do yet should not take 4 MB for it

    soup = BeautifulSoup(html, "html.parser")
    title = _text(soup.title) if soup.title else ""
    addresses = [(_text(link), urljoin(base_url, str(link["href"]).strip())) for link in soup.find_all("a", href=True)]
    links = dict.fromkeys(link for link in addresses if not link[1].lower().startswith(("#", "javascript:", "data:")))
    for tag in soup.find_all(_NOISE):
        tag.decompose()
    articles = soup.find_all("article")
    body = (articles[0] if len(articles) == 1 else soup.find("main")) or soup.body or soup
    for tag in body.find_all(("header", "footer")):
        if tag.find("h1") is None:
            tag.decompose()
    headings = tuple((int(tag.name[1]), _text(tag)) for tag in body.find_all(_HEADINGS) if _text(tag))
    blocks = [tag for tag in body.find_all(_BLOCKS) if tag.find_parent(("p", "li", "blockquote", "td", "th", "pre")) is None]
    text = "\n\n".join(filter(None, map(_block, blocks)))
    if len(text) < len(" ".join(body.get_text(" ").split())) // 2:  # a page of bare <div>s
        text = "\n\n".join(" ".join(line.split()) for line in body.get_text("\n").splitlines() if line.strip())
    return Page(title or (headings[0][1] if headings else ""), text, headings, tuple(links))


def _block(tag: Tag) -> str:
    if tag.name == "pre":
        return tag.get_text().strip("\n")
    return f"- {_text(tag)}" if tag.name == "li" and _text(tag) else _text(tag)


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split()).replace(" ,", ",").replace(" .", ".")
