"""Readable text of a web page: what a reader would read, without menus, scripts and styling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_NOISE = ("script", "style", "noscript", "template", "svg", "iframe", "form", "nav", "aside", "button", "dialog")
_BLOCKS = (
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "li",
    "blockquote",
    "pre",
    "td",
    "th",
    "dt",
    "dd",
    "figcaption",
    "caption",
    "summary",
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


@dataclass(frozen=True)
class Page:
    """A page as text: paragraphs apart by blank lines, headings with their level, links with their text and full address."""

    title: str
    text: str
    headings: tuple[tuple[int, str], ...]
    links: tuple[tuple[str, str], ...]


def read_html(html: str | bytes, base_url: str = "") -> Page:
    """Extract a page's title, readable text, headings and links."""
    from bs4 import BeautifulSoup  # here, since an agent that has nothing to do yet should not take 4 MB for it

    soup = BeautifulSoup(html, "html.parser")
    title = _text(soup.title) if soup.title else ""
    links = tuple(dict.fromkeys(_link(link, base_url) for link in soup.find_all("a", href=True) if _link(link, base_url)[1]))
    for tag in soup.find_all(_NOISE):
        tag.decompose()
    body = _article(soup)
    for tag in body.find_all(("header", "footer")):
        if tag.find("h1") is None:
            tag.decompose()
    headings = tuple((int(tag.name[1]), _text(tag)) for tag in body.find_all(_HEADINGS) if _text(tag))
    blocks = [
        _block(tag) for tag in body.find_all(_BLOCKS) if tag.find_parent(("p", "li", "blockquote", "td", "th", "pre")) is None
    ]
    text = "\n\n".join(block for block in blocks if block)
    loose = " ".join(body.get_text(" ").split())
    if len(text) < len(loose) // 2:  # a page of bare <div>s
        text = "\n\n".join(" ".join(line.split()) for line in body.get_text("\n").splitlines() if line.strip())
    return Page(title or (headings[0][1] if headings else ""), text, headings, links)


def _article(soup: BeautifulSoup) -> Tag:
    from bs4 import Tag

    for candidate in (soup.find("article"), soup.find("main"), soup.find(role="main")):
        if isinstance(candidate, Tag) and len(candidate.get_text(strip=True)) > 100:
            return candidate if len(soup.find_all("article")) <= 1 or candidate.name != "article" else (soup.body or soup)
    return soup.body or soup


def _block(tag: Tag) -> str:
    if tag.name == "pre":
        return tag.get_text().strip("\n")
    text = _text(tag)
    return f"- {text}" if tag.name == "li" and text else text


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split()).replace(" ,", ",").replace(" .", ".")


def _link(tag: Tag, base_url: str) -> tuple[str, str]:
    address = urljoin(base_url, str(tag["href"]).strip())
    leads_somewhere = not address.startswith("#") and address.partition(":")[0].lower() not in ("javascript", "data")
    return (_text(tag), address if leads_somewhere else "")
