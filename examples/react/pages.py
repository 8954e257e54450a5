"""Read pages of a web site.

Pages are UTF-8, and come and go as bytes, of which an agent keeps no more than their site has sent.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from bs4 import BeautifulSoup, CData, Tag
from bs4.dammit import EncodingDetector
from bs4.element import NavigableString

from ioa import InvalidInputError

MAX_MARKS = 200_000
MAX_SHOWN_CHARS = 20_000
"""More than a model is shown of what a tool brings."""
_CALLED, _FIELDS = frozenset({"a", "button"}), frozenset({"input", "select", "textarea"})
"""What is clicked, by what is said in it, and what is filled in."""
_BLOCKS = frozenset("h1 h2 h3 h4 h5 h6 p li tr div section article form table ul ol dl dt dd pre br label".split())
_CELLS = frozenset({"td", "th"})
_UNSEEN = frozenset({"script", "style", "template", "noscript"})


def as_utf8(body: bytes) -> bytes:
    """Write a page anew that came in any encoding."""
    body, marked = EncodingDetector.strip_byte_order_mark(body)
    try:
        text = body.decode(marked or EncodingDetector.find_declared_encoding(body, is_html=True) or "utf-8", errors="replace")
    except LookupError:
        text = body.decode(errors="replace")
    return text.encode(errors="replace")


def readable(page: bytes) -> str:
    """Write a page as text: a line for each block and each row of a table, and its parts with their numbers."""
    return _cut(_written(_soup(page)))


def found(page: bytes, words: str) -> str:
    """Give the lines of a page in which one of these words stands, with the line before and after each."""
    wanted = set(re.findall(r"\w+", words.lower()))
    lines = _written(_soup(page))
    near = {
        near
        for number, line in enumerate(lines)
        if wanted & set(re.findall(r"\w+", line.lower()))
        for near in (number - 1, number, number + 1)
    }
    return _cut([line for number, line in enumerate(lines) if number in near]) or "None of these words is on the page."


def filled(page: bytes, number: int, text: str) -> bytes:
    """Return a page with a field filled in, or something chosen from a list."""
    soup = _soup(page)
    field = _part(soup, number)
    if field.name == "select":
        options = {_choice(option): option for option in field.find_all("option")}
        if text not in options:
            raise InvalidInputError(f"[{number}] has no choice {text!r}.", hint=f"Take one of {_cut([', '.join(options)])}.")
        for option in options.values():
            del option["selected"]
        options[text]["selected"] = ""
    elif field.name == "textarea":
        field.string = text
    elif field.name == "input":
        field["value"] = text
    else:
        raise InvalidInputError(f"[{number}] is no field.", hint="Click it.")
    return str(soup).encode(errors="replace")


def following(page: bytes, number: int) -> tuple[str, str, str | None]:
    """Return what follows from clicking a part: how and where it is asked for, as the page says, and what a form sends."""
    part = _part(_soup(page), number)
    if part.name == "a":
        return "GET", str(part["href"]), None
    form = part.find_parent("form")
    if form is None or part.get("type", "submit") not in ("submit", "image"):
        raise InvalidInputError(f"Nothing follows from [{number}] without scripts.", hint="Take a link, or a form's button.")
    sent = [(str(part["name"]), str(part.get("value", "")))] if part.has_attr("name") else []
    sent += [(str(field["name"]), _value(field)) for field in _elements(form) if field.name in _FIELDS and _is_sent(field)]
    method = "POST" if str(form.get("method", "get")).lower() == "post" else "GET"
    return method, str(form.get("action", "")), urlencode(sent)


def _soup(page: bytes) -> BeautifulSoup:
    if page.count(b"<") > MAX_MARKS:
        raise InvalidInputError(f"The page has more than {MAX_MARKS:,} tags.", hint="Take another one.")
    return BeautifulSoup(page.decode(), "html.parser")


def _steps(root: Tag) -> Iterator[tuple[Tag | str, bool]]:
    """Give what is seen within an element in order: texts, and elements where they begin and where they end."""
    within = [(root, iter(root.contents))]
    while within:
        element, parts = within[-1]
        for part in parts:
            if isinstance(part, Tag) and part.name not in _UNSEEN:
                yield part, True
                within.append((part, iter(part.contents)))
                break
            if type(part) in (NavigableString, CData):
                yield str(part), True
        else:
            within.pop()
            if within:
                yield element, False


def _elements(root: Tag) -> Iterator[Tag]:
    return (element for element, begins in _steps(root) if begins and isinstance(element, Tag))


def _is_part(element: Tag) -> bool:
    """Return whether a part can be clicked or filled in, and so has a number."""
    if element.name == "a":
        return element.has_attr("href")
    if element.name == "input":
        return str(element.get("type")).lower() != "hidden"
    return element.name in _CALLED or element.name in _FIELDS


def _written(soup: BeautifulSoup) -> list[str]:
    """Write a page as lines. What is said in a part is in one line; of parts that lie in another one, what is said alone."""
    said, number, label = list[str](), 0, None
    for seen, begins in _steps(soup):
        is_part = begins and isinstance(seen, Tag) and _is_part(seen)
        number += is_part
        if label is None and is_part and isinstance(seen, Tag):
            label = seen
            said.append(_label(label, number))
        elif label is None:
            said.append(seen if isinstance(seen, str) else _gap(seen, begins=begins))
        elif label is seen:
            label = None
            said.append(" ")
        elif label.name in _CALLED and isinstance(seen, str):
            said.append(f"{' '.join(seen.split())} ")
    lines = (" ".join(line.split()) for line in "".join(said).splitlines())
    return [line for line in lines if line]


def _gap(element: Tag, *, begins: bool) -> str:
    """Return what stands before or behind an element."""
    if begins and element.name in _CELLS:
        before = element.find_previous_sibling(True)
        return " | " if isinstance(before, Tag) and before.name in _CELLS else ""
    return "\n" if element.name in _BLOCKS else ""


def _label(part: Tag, number: int) -> str:
    """Write a field, or how what is clicked begins."""
    if part.name in _CALLED:
        return f" [{number}] "
    if part.name == "input" and part.get("type") in ("submit", "button"):
        return f" [{number}] {part.get('value', '')}"
    choices = f" of {', '.join(_choice(option) for option in part.find_all('option'))}" if part.name == "select" else ""
    return f" [{number}: field {part.get('name', '')} = {_value(part)!r}{choices}]"


def _part(soup: BeautifulSoup, number: int) -> Tag:
    parts = [element for element in _elements(soup) if _is_part(element)]
    if not 1 <= number <= len(parts):
        raise InvalidInputError(f"There is no [{number}] on this page.", hint=f"It has {len(parts)} parts.")
    return parts[number - 1]


def _value(field: Tag) -> str:
    if field.name == "select":
        chosen = field.select_one("option[selected]") or field.find("option")
        return str(chosen.get("value", _choice(chosen))) if isinstance(chosen, Tag) else ""
    return field.get_text() if field.name == "textarea" else str(field.get("value", ""))


def _choice(option: Tag) -> str:
    return str(option.find(string=True, recursive=False) or "").strip()  # the next option lies in it, if it is not closed


def _is_sent(field: Tag) -> bool:
    kind = field.get("type")
    return field.has_attr("name") and kind not in ("submit", "button", "image", "reset") and not _is_unchecked(field)


def _is_unchecked(field: Tag) -> bool:
    return field.get("type") in ("checkbox", "radio") and not field.has_attr("checked")


def _cut(lines: list[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}\n… more than {MAX_SHOWN_CHARS:,} characters."
