"""Names of files in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ioa.normal_form import normal_form

_PATH = re.compile(r"(?<![\w.\-/\\])[\w.-]++(?:[/\\][\w.-]++)++")
_WORD, _ENDS = re.compile(r"[\w.-]+"), re.compile(r"(?<=\w)(?!\w)")


class FileNames:
    """Find the names of files in texts.

    Args:
        names: The names.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._known = {name: comparable(name) for name in names}
        self._any_case, self._as_written = _pattern(self._known.values()), _pattern(map(composed, names))

    def find_in(self, text: str) -> set[str]:
        """Return the names that occur in a text as whole words, in any case.

        If two names differ only by case, the name with the case of the text is returned. The path `out/x.csv` matches the attached
        file `out-x.csv` if it exists, otherwise `x.csv`. At each place the longest name counts.
        """
        text = as_attached(text, self._names)
        said = set(self._any_case.findall(comparable(text)))
        found = {name for name, one in self._known.items() if one in said}
        if len(found) == len(said):
            return found
        written = set(self._as_written.findall(composed(text)))
        exact = {name for name in found if composed(name) in written}
        exact_known = {self._known[name] for name in exact}
        return {name for name in found if name in exact or self._known[name] not in exact_known}


def names_in(text: str, names: Collection[str]) -> set[str]:
    """Return the names that occur in one text; see `FileNames.find_in`."""
    return FileNames(names).find_in(text)


def words_in(names: Iterable[str]) -> set[str]:
    """Return, with its case folded, every word of these names that a text may use for the file."""
    # Words are split before the case is folded: the lower case of a letter may end in a combining mark, which ends a word.
    words = [word for name in names for word in _WORD.findall(composed(name))]
    return {comparable(word[: end.start()]) for word in words for end in _ENDS.finditer(word)}


def as_attached(text: str, names: Iterable[str]) -> str:
    """Replace paths in a text by the names of files that were attached from folders, with a dash for each separator."""
    known = {comparable(name) for name in names}

    def attached(path: re.Match[str]) -> str:
        name = path[0].replace("\\", "/").removeprefix("./").replace("/", "-")
        return name if comparable(name.rstrip(".")) in known else path[0]

    return _PATH.sub(attached, text)


def composed(name: str) -> str:
    """Return a name in Unicode's form NFC."""
    return normal_form("NFC", name)


def comparable(name: str) -> str:
    """Return a name in the form in which names that differ only by case are equal."""
    return composed(name).casefold()


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?!\w)" if longest_first else r"(?!)")
