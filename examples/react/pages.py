"""A web page: its text for a model, its fields, and the requests of its links and forms."""

import re
from collections.abc import Iterator
from copy import copy
from urllib.parse import urlencode

from bs4 import BeautifulSoup, Tag

from ioa import InvalidInputError

MAX_BYTES = 1_000_000
"""Maximum bytes of a page that are parsed."""
MAX_SHOWN_CHARS = 20_000
_BLOCKS = "h1 h2 h3 h4 h5 h6 p li tr div section article form table ul ol dl dt dd pre br label".split()
_CLICKED, _FIELDS = ("a", "button"), ("input", "select", "textarea")
_UNCHECKABLE = ("checkbox", "radio")
_BUTTONS = ("submit", "button", "image", "reset")


class Page:
    """A page. Its links, buttons and fields have numbers, from 1.

    Args:
        address: The URL of the page.
        body: The HTML, in any encoding.
    """

    def __init__(self, address: str, body: bytes) -> None:
        self.address = address
        self._soup = BeautifulSoup(body[:MAX_BYTES], "html.parser")
        for unseen in self._soup(["script", "style", "template", "noscript"]):
            unseen.decompose()

    def text(self) -> str:
        """Return the page as text: a line for each block and each row of a table."""
        return _shorten(self._lines())

    def find(self, words: str) -> str:
        """Return the lines that contain one of the words, with their neighbours."""
        wanted, lines = set(re.findall(r"\w+", words.lower())), self._lines()
        hits = [number for number, line in enumerate(lines) if wanted & set(re.findall(r"\w+", line.lower()))]
        near = {number + step for number in hits for step in (-1, 0, 1)}
        return _shorten([line for number, line in enumerate(lines) if number in near]) or "None of these words is on the page."

    def fill(self, number: int, text: str) -> None:
        """Fill in a field, or choose an option.

        Raises:
            InvalidInputError: It is not a field, or has no such option.
        """
        field = self._part(number)
        if field.name == "select":
            options = {_option(one): one for one in field("option")}
            if text not in options:
                raise InvalidInputError(f"[{number}] has no choice {text!r}.", hint=f"Take one of {', '.join(options)}.")
            for one in options.values():
                del one["selected"]
            options[text]["selected"] = ""
        elif field.name == "textarea":
            field.string = text
        elif field.name == "input":
            field["value"] = text
        else:
            raise InvalidInputError(f"[{number}] is no field.", hint="Click it.")

    def follow(self, number: int) -> tuple[str, str, str | None]:
        """Return the method, the address and the form data of the request that a click makes.

        Raises:
            InvalidInputError: A click makes no request.
        """
        part = self._part(number)
        if part.name == "a":
            return "GET", str(part["href"]), None
        form = part.find_parent("form")
        if form is None or part.get("type", "submit") not in ("submit", "image"):
            raise InvalidInputError(f"Nothing follows from [{number}] without scripts.", hint="Take a link, or a form's button.")
        sent = [part] if part.has_attr("name") else []
        sent += [one for one in form(_FIELDS) if one.has_attr("name") and one.get("type") not in _BUTTONS and _is_on(one)]
        method = "POST" if str(form.get("method", "get")).lower() == "post" else "GET"
        return method, str(form.get("action", "")), urlencode([(str(one["name"]), _value(one)) for one in sent])

    def _lines(self) -> list[str]:
        soup = copy(self._soup)
        for number, part in enumerate(_parts(soup), 1):
            if part.name in _CLICKED:
                part.insert(0, f" [{number}] ")
                part.append(" ")
            else:
                part.replace_with(_label(part, number))
        for cell in soup(["td", "th"]):
            if cell.find_previous_sibling(["td", "th"]):
                cell.insert_before(" | ")
        for block in soup(_BLOCKS):
            block.insert_before("\n")
            block.insert_after("\n")
        return [line for text in soup.get_text().splitlines() if (line := " ".join(text.split()))]

    def _part(self, number: int) -> Tag:
        parts = list(_parts(self._soup))
        if not 1 <= number <= len(parts):
            raise InvalidInputError(f"There is no [{number}] on this page.", hint=f"It has {len(parts)} parts.")
        return parts[number - 1]


def _parts(soup: BeautifulSoup) -> Iterator[Tag]:
    """Yield the links, buttons and fields, in order."""
    for part in soup([*_CLICKED, *_FIELDS]):
        if not (part.name == "a" and not part.has_attr("href")) and str(part.get("type")).lower() != "hidden":
            yield part


def _label(field: Tag, number: int) -> str:
    if field.name == "input" and field.get("type") in ("submit", "button"):
        return f" [{number}] {field.get('value', '')} "
    choices = f" of {', '.join(map(_option, field('option')))}" if field.name == "select" else ""
    return f" [{number}: field {field.get('name', '')} = {_value(field)!r}{choices}] "


def _value(field: Tag) -> str:
    if field.name == "select":
        chosen = field.select_one("option[selected]") or field.find("option")
        return str(chosen.get("value", _option(chosen))) if isinstance(chosen, Tag) else ""
    return field.get_text() if field.name == "textarea" else str(field.get("value", ""))


def _option(option: Tag) -> str:
    return str(option.find(string=True, recursive=False) or "").strip()  # contains the next option, if it is not closed


def _is_on(field: Tag) -> bool:
    return field.get("type") not in _UNCHECKABLE or field.has_attr("checked")


def _shorten(lines: list[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}\n… more than {MAX_SHOWN_CHARS:,} characters."
