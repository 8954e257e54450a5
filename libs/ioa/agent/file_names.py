"""Names of files in what is said: which stand there whole, and are no part of a longer name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ioa.agent.whole_names import WholeNames
from ioa.normal_form import in_normal_form

_PATH = re.compile(r"(?<![\w.\-/\\])[\w.-]++(?:[/\\][\w.-]++)++")
_WORD, _ENDS = re.compile(r"[\w.-]+"), re.compile(r"(?<=\w)(?!\w)")


class FileNames:
    """Names of files to be found in what is said, in some texts.

    Args:
        names: The names.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._known = {name: comparable(name) for name in names}
        self._alike, self._written = WholeNames(self._known.values()), WholeNames(map(composed, names))

    def said_in(self, text: str) -> set[str]:
        """Return the names that stand whole in a text, in any case; of two that differ by case alone the one that is said so.

        `out/x.csv` is `out-x.csv`, as a file is attached that code writes there, if there is such a name; else `x.csv`. Where one
        name stands within another, the longer one is named: `my notes.txt` does not name `notes.txt`.
        """
        text = as_attached(text, self._names)
        said = self._alike.found_in(comparable(text))
        found = {name for name, one in self._known.items() if one in said}
        if not found:
            return found
        written = self._written.found_in(composed(text))
        as_written = {name for name in found if composed(name) in written}
        said_so = {self._known[name] for name in as_written}
        return {name for name in found if name in as_written or self._known[name] not in said_so}


def names_in(text: str, names: Collection[str]) -> set[str]:
    """Return the names that stand whole in one text; see `FileNames.said_in`."""
    return FileNames(names).said_in(text)


def words_in(names: Iterable[str]) -> set[str]:
    """Return, in lower case, every word that stands whole in one of these names, and so may be meant by it."""
    words = [word for name in names for word in _WORD.findall(comparable(name))]
    return {word[: end.start()] for word in words for end in _ENDS.finditer(word)}


def as_attached(text: str, names: Iterable[str]) -> str:
    """Write paths in a text as the names of files that were attached from folders: those with a dash where a folder ends."""
    known = {comparable(name) for name in names}

    def attached(path: re.Match[str]) -> str:
        name = path[0].replace("\\", "/").removeprefix("./").replace("/", "-")
        return name if comparable(name.rstrip(".")) in known else path[0]

    return _PATH.sub(attached, text)


def composed(name: str) -> str:
    """Write a name as any system does: some write one accent as two characters."""
    return in_normal_form("NFC", name)


def comparable(name: str) -> str:
    """Write a name as those are alike that differ by case alone."""
    return composed(name).casefold()
