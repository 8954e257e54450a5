"""Measure which repetitions the group machine refuses, which other messages it refuses by mistake, and what that saves.

    python benchmarks/repetition.py [--list]

The conversations in `tests/data/repetition/` are written, not recorded: chats in the style of language models, with planted
repetitions (verbatim, lightly and strongly rephrased) and planted messages that only look like one. The detector was tuned on
one half and never on the other. Tokens are counted as words times 1.3. A message that becomes a turn is read by every other
member; a refused one is read by nobody, but its sender reads the refusal.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ioa.group.repetition import LOOKBACK, Heard, repeated_message, sketch_of
from ioa.group.wording import wording_of
from ioa.protocol.ids import AgentId

DATA = Path(__file__).parents[1] / "tests" / "data" / "repetition"
HALVES = {"tuning": "tuning.jsonl", "held out": "held_out.jsonl"}
TOKENS_PER_WORD = 1.3
REFUSAL_WORDS = 20
"""About what the machine's refusal says."""


@dataclass(frozen=True)
class Spoken:
    """A message of a conversation: `kind` says what it was written to be, `of` which one it repeats, if it does."""

    conversation: str
    turn: int
    by: AgentId
    text: str
    kind: str
    of: int | None


@dataclass
class Score:
    """What was refused, by kind of message, and the tokens read by all members together."""

    seen: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    repeating: set[str] = field(default_factory=set)
    mistakes: list[str] = field(default_factory=list)
    tokens: float = 0
    saved: float = 0

    def share(self, *, repeating: bool, only: Iterable[str] | None = None) -> tuple[int, int]:
        """How many of the messages that repeat, or of those that do not, were refused."""
        kinds = [kind for kind in (only or self.seen) if (kind in self.repeating) == repeating]
        return sum(self.refused[kind] for kind in kinds), sum(self.seen[kind] for kind in kinds)


def read(file: Path) -> list[Spoken]:
    """Read the messages of a half, conversation by conversation."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Spoken(row["conversation"], row["n"], AgentId(row["by"]), row["text"], row["kind"], row.get("of")) for row in rows]


def score(messages: Sequence[Spoken]) -> Score:
    """Let the detector decide as the machine does: what is refused is heard by nobody."""
    result = Score()
    for _, conversation in groupby(messages, key=lambda message: message.conversation):
        _listen(list(conversation), result)
    return result


def _listen(conversation: Sequence[Spoken], result: Score) -> None:
    heard: tuple[Heard, ...] = ()
    readers = len({message.by for message in conversation}) - 1
    for message in conversation:
        wording = wording_of(message.text)
        again = repeated_message(wording, message.by, heard)
        tokens = len(message.text.split()) * TOKENS_PER_WORD * readers
        result.tokens += tokens
        result.seen[message.kind] += 1
        if message.of is not None:
            result.repeating.add(message.kind)
        if again is None:
            heard = (*heard, Heard(turn=message.turn, by=message.by, sketch=sketch_of(wording)))[-LOOKBACK:]
        else:
            result.refused[message.kind] += 1
            result.saved += (tokens if message.of is not None else 0) - REFUSAL_WORDS * TOKENS_PER_WORD
        if (again is None) == (message.of is not None):
            what = "missed" if again is None else f"refused as turn {again.turn}"
            result.mistakes.append(f"{message.conversation} {message.turn} ({message.kind}), {what}: {message.text}")


def table(scores: dict[str, Score]) -> Table:
    """Lay the scores of the halves out side by side."""
    drawn = Table(title="Messages that were refused")
    drawn.add_column("message")
    for half in scores:
        drawn.add_column(half, justify="right")
    repeating = sorted(set().union(*(result.repeating for result in scores.values())))
    others = sorted(set().union(*(set(result.seen) for result in scores.values())) - set(repeating))
    drawn.add_row("repetitions: caught", *(_percent(*result.share(repeating=True)) for result in scores.values()))
    for kind in repeating:
        drawn.add_row(f"  {kind}", *(_percent(result.refused[kind], result.seen[kind]) for result in scores.values()))
    drawn.add_row("others: refused by mistake", *(_percent(*result.share(repeating=False)) for result in scores.values()))
    look_alikes = [kind for kind in others if kind != "new"]
    drawn.add_row("  look-alikes only", *(_percent(*result.share(repeating=False, only=look_alikes)) for result in scores.values()))
    for kind in others:
        drawn.add_row(f"  {kind}", *(_percent(result.refused[kind], result.seen[kind]) for result in scores.values()))
    drawn.add_row("tokens saved", *(f"{result.saved / result.tokens:.1%}" for result in scores.values()))
    return drawn


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part} of {whole})" if whole else "-"


def main() -> None:
    """Print the table, and with `--list` the mistakes on the tuning half: who reads those of the other one has to replace it."""
    parser = argparse.ArgumentParser(description="Measure the detection of repetitions.")
    parser.add_argument("--list", action="store_true", help="list the mistakes on the tuning half")
    options = parser.parse_args()
    scores = {half: score(read(DATA / file)) for half, file in HALVES.items()}
    console = Console()
    console.print(table(scores))
    if options.list:
        for mistake in scores["tuning"].mistakes:
            console.print(mistake, markup=False)


if __name__ == "__main__":
    main()
