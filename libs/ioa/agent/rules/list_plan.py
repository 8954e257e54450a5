"""Markdown lists: each item is a task, and `#2` in an item means the result of item 2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from ioa.errors import InvalidInputError

MAX_ITEMS = 32
"""Maximum items of a list; all are assigned with one message, and searched with one request."""
_ITEM = re.compile(r"(?P<indent> *)(?:[-*+•]|(?P<number>\d{1,9})[.)])[ \t]+(?P<text>\S.*)")
_REFERENCE = re.compile(r"(?<![\w#])#(\d{1,9})(?!\w)")


@dataclass(frozen=True)
class ListItem:
    """One task; `uses` are the positions of the earlier items whose results it uses, from 0, in the order of the text."""

    text: str
    uses: tuple[int, ...] = ()


def parse_list(text: str) -> tuple[str, tuple[ListItem, ...]]:
    """Split a text into an introduction and the items of its Markdown list.

    A list has at least two items. Indented lines continue an item; a list within an item belongs to that item, with references of
    its own. Any other text, also a text that goes on after its list, is returned unchanged, without items.

    Raises:
        InvalidInputError: A reference names no earlier item, or the list is too long.
    """
    introduction, items, numbers, indent = list[str](), list[list[str]](), list[int](), ""
    for line in text.expandtabs(4).splitlines():
        found = _ITEM.fullmatch(line)
        if found and (not items or found["indent"] == indent):
            indent = found["indent"]
            numbers.append(int(found["number"] or len(items) + 1))
            items.append([found["text"]])
        elif not items:
            introduction.append(line)
        elif not line.strip() or line.startswith(f"{indent} "):
            items[-1].append(line)
        else:
            return text, ()
    if len(items) < 2:
        return text, ()
    if len(items) > MAX_ITEMS:
        raise InvalidInputError(f"The list has {len(items)} items; at most {MAX_ITEMS} are allowed.")
    texts = ["\n".join([first, dedent("\n".join(rest))]).strip() for first, *rest in items]
    uses = [_uses(item, numbers[:position]) for position, item in enumerate(texts)]
    return "\n".join(introduction).strip(), tuple(map(ListItem, texts, uses))


def has_items(text: str) -> bool:
    """Return whether a text has lines that begin like items, whether or not it is a list."""
    return any(_ITEM.fullmatch(line) for line in text.splitlines())


def _uses(item: str, earlier: list[int]) -> tuple[int, ...]:
    """Return the positions of the items that an item refers to outside of a list within it."""
    numbers = dict.fromkeys(map(int, _REFERENCE.findall(parse_list(item)[0])))
    for number in numbers:
        if earlier.count(number) != 1:
            raise InvalidInputError(f"#{number} in “{item.splitlines()[0]}” must be the number of exactly one earlier item.")
    return tuple(earlier.index(number) for number in numbers)
