"""Names of files in what is said: which stand there whole, and are no part of a longer name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ioa.normal_form import in_normal_form

_IN_NAMES = "_.-"
_PATH = re.compile(r"(?<![\w.\-/\\])[\w.-]++(?:[/\\][\w.-]++)++")


def names_in(text: str, names: Collection[str]) -> set[str]:
    """Return the names that stand whole in a text, in any case; of two that differ by case alone the one that is said so.

    `out/x.csv` is `out-x.csv`, as a file is attached that code writes there, if there is such a name; else `x.csv`.
    """
    text = as_attached(text, names)
    found = {name for name in names if _stands_in(_comparable(name), _without_longer(name, text, names))}
    as_written = {name for name in found if _stands_in(composed(name), composed(text))}
    said_so = {_comparable(name) for name in as_written}
    return {name for name in found if name in as_written or _comparable(name) not in said_so}


def as_attached(text: str, names: Iterable[str]) -> str:
    """Write paths in a text as the names of files that were attached from folders: those with a dash where a folder ends."""
    known = {_comparable(name) for name in names}

    def attached(path: re.Match[str]) -> str:
        name = path[0].replace("\\", "/").removeprefix("./").replace("/", "-")
        return name if _comparable(name.rstrip(".")) in known else path[0]

    return _PATH.sub(attached, text)


def composed(name: str) -> str:
    """Write a name as any system does: some write one accent as two characters."""
    return in_normal_form("NFC", name)


def _comparable(name: str) -> str:
    return composed(name).casefold()


def _stands_in(name: str, text: str) -> bool:
    return any(True for _ in _places(name, text))


def _places(name: str, text: str) -> Iterator[int]:
    """Tell where a name stands in a text, and is no part of a longer one; a full stop may follow it."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or (before and before in _IN_NAMES) or after.isalnum() or after == "_"):
            yield at
        at = text.find(name, at + 1)


def _without_longer(name: str, text: str, names: Iterable[str]) -> str:
    """Take the names that hold a name out of a text: `my notes.txt` does not name `notes.txt`."""
    said = _comparable(text)
    for longer in {_comparable(other) for other in names} - {_comparable(name)}:
        for at in [*_places(longer, said)] if _comparable(name) in longer else ():
            said = f"{said[:at]}{' ' * len(longer)}{said[at + len(longer) :]}"
    return said
