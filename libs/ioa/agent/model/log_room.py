"""How the lines of a log share a room that is too small for all, and what is kept of them from one prompt to the next.

While there is room every line stands whole. A longer log is cut in steps: filled to a part of the room, and left as it is until
the room is full again, so that what a provider has read stays the beginning of the next prompt. A cut is a fold over the lines:
nothing of it is stored, and a process that starts anew cuts as the one before.

A prompt is written for each ask, repair, retry and read, and most of its log is that of the one before, though under other names
where a member remembers only what was said last. So each line is measured once, and of those that were shown as much is kept as
prompts show, with some more: all that members have said may be a hundred times as much, and made to be slow to read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from ioa.agent.model.log_lines import LogEntry, ShortLine, entries_of
from ioa.agent.turn_view import TurnView
from ioa.protocol.ids import TaskId

FILLED = 0.7
"""How much of the room a cut leaves filled."""
WHOLE_LINES = 8
"""How many of the last lines a cut leaves whole, while they fit."""
_LEAST_LINE_TOKENS = 100
"""A line that would get less is left out, with those before it."""
_KEPT_TIMES = 4
"""How many times as much of a line is kept as was to be shown: what others leave it changes with each cut."""
_KEPT_TOKENS = 1_000_000
"""If more is kept, what the last prompt has not shown is dropped."""


class _Line(Protocol):
    """What shares a room."""

    @property
    def size(self) -> int:
        """How many tokens it takes."""

    @property
    def gives(self) -> tuple[TaskId, ...]:
        """The tasks it gives out."""

    @property
    def ends(self) -> TaskId | None:
        """The task whose end it is."""

    def shown(self, name: str, most_tokens: int | None = None) -> str:
        """Return it by a name, cut if it would be longer."""


class KeptLine:
    """A line with its size for good, and as much of it as prompts have shown, under whatever name."""

    def __init__(self, entry: LogEntry) -> None:
        line = entry.line()
        self.entry, self.size, self.gives, self.ends = entry, line.size, line.gives, line.ends
        self.kept_tokens = 0
        """How many tokens may be shown of what is kept."""
        self.is_shown = False
        """Whether it was shown since this was last unset."""
        self._kept: ShortLine | None = None

    def shown(self, name: str, most_tokens: int | None = None) -> str:
        """Return the line, its text cut if it would be longer."""
        tokens = self.size if most_tokens is None else most_tokens
        if self._kept is None or tokens > self.kept_tokens:
            self.kept_tokens = min(self.size, _KEPT_TIMES * tokens)
            self._kept = self.entry.line().shortened(self.kept_tokens)
        self.is_shown = True
        return self._kept.shown(name, tokens)

    def drop(self) -> None:
        """Keep nothing of it but its size."""
        self._kept, self.kept_tokens = None, 0


class KeptLog:
    """The lines of the log of one member, from one prompt to the next, however much of it each shows."""

    def __init__(self) -> None:
        self._lines: dict[int, KeptLine] = {}
        """By the identity of what was said, since senders choose ids; with each stands its entry, so that it lasts."""

    def fitting(self, view: TurnView, room: int) -> str:
        """Return the log in at most about `room` tokens."""
        if room * FILLED < 1:
            return ""
        told = fitting([self._line(entry) for entry in entries_of(view, view.thoughts)], room)
        self._forget()
        return told

    def _line(self, entry: LogEntry) -> KeptLine:
        line = self._lines.get(id(entry.item))
        if line is None or line.entry[1:] != entry[1:]:  # as to its name, each prompt gives it one
            line = self._lines[id(entry.item)] = KeptLine(entry)
        return line

    def _forget(self) -> None:
        is_much = sum([line.kept_tokens for line in self._lines.values()]) > _KEPT_TOKENS
        for line in self._lines.values():
            if is_much and not line.is_shown:
                line.drop()
            line.is_shown = False


def fitting(lines: Sequence[_Line], room: int) -> str:
    """Return the lines in at most about `room` tokens: whole while they fit, else cut in steps (see above)."""
    if room * FILLED < 1:
        return ""
    shown: dict[int, int] = {}  # how many tokens each line so far has in the prompt; one that is left out is not in it
    still_open = _OpenTasks()
    total = 0
    for at, line in enumerate(lines):
        still_open.note(at, line)
        shown[at] = line.size
        total += line.size
        if total > room:
            shown = _levels(lines, at + 1, still_open.lines, room)
            total = sum(shown.values())
    return "\n".join(_told(lines, shown))


def _told(lines: Sequence[_Line], shown: dict[int, int]) -> Iterator[str]:
    """Return the lines as they are shown, with a mark wherever some are left out."""
    following = 0
    for at in sorted(shown):
        if at > following:
            yield f"[… m{following + 1} to m{at} are left out: READ them by these names …]"
        following = at + 1
        yield lines[at].shown(f"m{at + 1}", None if shown[at] >= lines[at].size else shown[at])


class _OpenTasks:
    """Which lines give out tasks that have not ended, in their order."""

    def __init__(self) -> None:
        self.lines: Counter[int] = Counter()
        """How many such tasks each gives out."""
        self._by_task: defaultdict[TaskId, list[int]] = defaultdict(list)
        self._ended: set[TaskId] = set()

    def note(self, at: int, line: _Line) -> None:
        """Go on by a line."""
        for task_id in line.gives:
            if task_id not in self._ended:
                self._by_task[task_id].append(at)
                self.lines[at] += 1
        if line.ends is not None:
            self._ended.add(line.ends)
            for given_at in self._by_task.pop(line.ends, ()):
                self.lines[given_at] -= 1
                if not self.lines[given_at]:
                    del self.lines[given_at]


def _levels(lines: Sequence[_Line], count: int, still_open: Counter[int], room: int) -> dict[int, int]:
    """How many tokens each of so many lines gets when the room is full; one that is left out gets none.

    Open tasks and the last lines stand whole, the others up to one level. No line is looked at that is older than all that get any.
    """
    target = int(room * FILLED)
    last = max(0, count - WHOLE_LINES)
    kept = chain(range(count - 1, last - 1, -1), (at for at in reversed(still_open) if at < last))
    got = _shared(((at, min(lines[at].size, room // 2)) for at in kept), target)
    left = target - sum(got.values())
    others = (at for at in range(last - 1, -1, -1) if at not in still_open)
    got |= _shared(((at, lines[at].size) for at in others), left)
    return {at: tokens for at, tokens in got.items() if tokens}


def _shared(newest_first: Iterable[tuple[int, int]], room: int) -> dict[int, int]:
    """Return what lines get of a room: all up to one level. Those that are too old to get enough for a line are left out."""
    told: list[tuple[int, int]] = []
    least = 0
    for at, size in newest_first:
        least += min(size, _LEAST_LINE_TOKENS)
        if told and least > room:
            break
        told.append((at, size))
    level = _level([size for _, size in told], max(0, room))
    return {at: min(size, level) for at, size in told}


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the level L at which the sizes, each at most L, fill the room."""
    left = room
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)
