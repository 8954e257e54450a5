"""The prompts as versioned assets, and how data of others is put into them.

A version of the prompts is a folder; a change of wording that changes what a model decides is a new folder, so that runs can be
compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from string import Template

from ioa.fences import defused, in_one_line

VERSION = "v2"


class Prompts:
    """The prompts, read once."""

    def __init__(self) -> None:
        folder = files("ioa.agent.model").joinpath("prompts", VERSION)
        self._texts = {entry.name.removesuffix(".md"): entry.read_text("utf-8") for entry in folder.iterdir() if entry.is_file()}

    def fill(self, name: str, **values: object) -> str:
        """Fill a prompt's placeholders. Values are put in as they are and never read for placeholders themselves."""
        filled = Template(self._texts[name]).substitute({key: str(value) for key, value in values.items()})
        return re.sub(r"\n{3,}", "\n\n", filled).strip()


@dataclass(frozen=True)
class Ends:
    """The beginning and the end of a text, of which is cut what would be cut of all of it.

    Attributes:
        chars: How many characters the text has; None of a file of which nothing but these ends was read.
        size_bytes: How many bytes.
        whole: The text, if it is no longer than what it may be cut to.
    """

    chars: int | None
    size_bytes: int
    head: bytes
    tail: bytes
    whole: str | None

    def cut(self, most_bytes: int, what: str = "") -> str:
        """Do what `cut` does, to no more bytes than these ends are of."""
        if self.whole is not None and self.size_bytes <= most_bytes:
            return self.whole
        room = max(0, most_bytes - _MARK_BYTES)
        head = defused(self.head[: room - room // 3].decode("utf-8", "ignore"))  # a cut word may be a tag where the whole was none
        tail = self.tail[len(self.tail) - room // 3 :].decode("utf-8", "ignore")
        where = f": READ {what} from {len(head)}" if what else ""
        if self.chars is None:
            return f"{head} [… cut: {self.size_bytes:,} bytes in all{where} …] {tail}"
        return f"{head} [… {self.chars - len(head) - len(tail):,} of {self.chars:,} characters{where} …] {tail}"

    def excerpt(self, most_bytes: int, what: str = "") -> str:
        """Cut what others wrote, and defuse it; a letter may take three bytes then instead of one."""
        return self._made(defused, most_bytes, what)

    def line(self, most_bytes: int) -> str:
        """Cut what others wrote to a part of a line, and defuse it."""
        return self._made(in_one_line, most_bytes)

    def _made(self, harmless: Callable[[str], str], most_bytes: int, what: str = "") -> str:
        if self.whole is not None:
            return cut(harmless(self.whole), most_bytes, what)
        head, tail = (harmless(end.decode("utf-8", "ignore")).encode() for end in (self.head, self.tail))
        return replace(self, head=head, tail=tail).cut(most_bytes, what)


def ends_of(text: str, most_bytes: int) -> Ends:
    """Return what is needed to cut a text to at most so many bytes."""
    data = text.encode("utf-8", "replace")
    size, tail = len(data), min(len(data), most_bytes // 3)
    return Ends(len(text), size, data[:most_bytes], data[size - tail :], text if size <= most_bytes else None)


def cut(text: str, most_bytes: int, what: str = "") -> str:
    """Keep the beginning and the end of a text that is too long, with a mark between them that says how to see the rest.

    Args:
        text: What may be cut.
        most_bytes: What it may take up, the mark included.
        what: What READ calls the text; empty if it cannot be read.
    """
    return ends_of(text, max(0, most_bytes)).cut(most_bytes, what)


def excerpt(text: str, most_bytes: int, what: str = "") -> str:
    """Do what `cut` does to what others wrote, and defuse it. What is not shown of a long text is not looked through."""
    return ends_of(text, max(0, most_bytes)).excerpt(most_bytes, what)


def line_of(text: str, most_bytes: int) -> str:
    """Do what `excerpt` does, within a line. What is somewhat longer is looked through, since it may be by its blanks alone."""
    return ends_of(text, _WITH_BLANKS * max(0, most_bytes)).line(most_bytes)


_WITH_BLANKS = 4
_MARK_BYTES = 120
