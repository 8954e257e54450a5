"""Measure which repetitions the group machine refuses, which other messages it refuses by mistake, and what that saves.

    python benchmarks/repetition.py [--recorded] [--list] [--cost]

The conversations in `tests/data/repetition/` have planted repetitions (verbatim, lightly and strongly rephrased) and messages that
only look like one. Most were written in the style of language models, `recorded` holds what real agents said to each other. The
detector was developed on the other files and never on `recorded`, of which only totals are shown. Tokens are counted as words times
1.3. A message that becomes a turn is read by every other member; a refused one is read by nobody, but its sender reads the refusal.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from ioa.group.lexicon import feature_of
from ioa.group.repetition import LOOKBACK, repeated
from ioa.group.sketch import Sketch, sketch_of
from ioa.group.wording import wording_of
from ioa.protocol.ids import AgentId

DATA = Path(__file__).parents[1] / "tests" / "data" / "repetition"
DEVELOPMENT = {"tuning": "tuning.jsonl", "held out": "held_out.jsonl", "pairs": "pairs.jsonl", "fresh": "fresh.jsonl"}
UNREAD = {"recorded": "recorded.jsonl"}
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
    """Read the messages of a file, conversation by conversation."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Spoken(row["conversation"], row["n"], AgentId(row["by"]), row["text"], row["kind"], row.get("of")) for row in rows]


def score(messages: Sequence[Spoken]) -> Score:
    """Let the detector decide as the machine does: what is refused is heard by nobody."""
    result = Score()
    for _, conversation in groupby(messages, key=lambda message: message.conversation):
        _listen(list(conversation), result)
    return result


def _listen(conversation: Sequence[Spoken], result: Score) -> None:
    heard: tuple[Sketch, ...] = ()
    speakers = list(dict.fromkeys(message.by for message in conversation))
    for message in conversation:
        wording, by = wording_of(message.text), speakers.index(message.by)
        again = repeated(wording, by, heard, lambda earlier: {feature_of(speakers[earlier.who])})
        tokens = len(message.text.split()) * TOKENS_PER_WORD * (len(speakers) - 1)
        result.tokens += tokens
        result.seen[message.kind] += 1
        if message.of is not None:
            result.repeating.add(message.kind)
        if again is None:
            heard = (*heard, sketch_of(wording, by, message.turn))[-LOOKBACK:]
        else:
            result.refused[message.kind] += 1
            result.saved += (tokens if message.of is not None else 0) - REFUSAL_WORDS * TOKENS_PER_WORD
        if (again is None) == (message.of is not None):
            what = "missed" if again is None else f"refused as turn {again.place}"
            result.mistakes.append(f"{message.conversation} {message.turn} ({message.kind}), {what}: {message.text}")


def table(scores: dict[str, Score]) -> Table:
    """Lay the scores of the files out side by side."""
    drawn = Table(title="Messages that were refused")
    drawn.add_column("message", no_wrap=True)
    for name in scores:
        drawn.add_column(name, justify="right", no_wrap=True)
    repeating = sorted(set().union(*(result.repeating for result in scores.values())))
    others = sorted(set().union(*(set(result.seen) for result in scores.values())) - set(repeating))
    drawn.add_row("repetitions caught", *(_percent(*result.share(repeating=True)) for result in scores.values()))
    for kind in repeating:
        drawn.add_row(f"  {kind}", *(_percent(result.refused[kind], result.seen[kind]) for result in scores.values()))
    drawn.add_row("others refused", *(_percent(*result.share(repeating=False)) for result in scores.values()))
    look_alikes = [kind for kind in others if kind != "new"]
    drawn.add_row("  look-alikes", *(_percent(*result.share(repeating=False, only=look_alikes)) for result in scores.values()))
    for kind in others:
        drawn.add_row(f"  {kind}", *(_percent(result.refused[kind], result.seen[kind]) for result in scores.values()))
    drawn.add_row("tokens saved", *(f"{result.saved / result.tokens:.1%}" for result in scores.values()))
    return drawn


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part}/{whole})" if whole else "-"


def cost() -> Table:
    """Measure reading and comparing a message of about 200 bytes, and what ten such messages leave in the state."""
    *earlier, text = _of_200_bytes(read(DATA / DEVELOPMENT["tuning"]), LOOKBACK + 1)
    heard = tuple(sketch_of(wording_of(old), 0, turn) for turn, old in enumerate(earlier))
    wording = wording_of(text)
    drawn = Table(title=f"A message of {len(text)} bytes and {len(wording.features)} words beside {LOOKBACK} others")
    drawn.add_column("part")
    drawn.add_column("cost", justify="right")
    parts: dict[str, Callable[[], object]] = {
        "read": lambda: wording_of(text),
        "compare": lambda: repeated(wording, 1, heard, lambda _: ()),
        "sketch": lambda: sketch_of(wording, 1, LOOKBACK),
    }
    for name, part in parts.items():
        drawn.add_row(name, f"{_least_microseconds(part):.1f} µs")
    drawn.add_row("state", f"{sum(map(len, heard))} bytes")
    return drawn


def _of_200_bytes(messages: Iterable[Spoken], count: int) -> list[str]:
    """Join messages until each text has about that length."""
    texts = [""]
    for message in messages:
        if len(texts[-1]) + len(message.text) / 2 > 200:
            if len(texts) == count:
                break
            texts.append("")
        texts[-1] = f"{texts[-1]} {message.text}".strip()
    return texts


def _least_microseconds(part: Callable[[], object], *, rounds: int = 9, times: int = 2_000) -> float:
    """The CPU time of one call in the fastest round."""
    spent = []
    for _ in range(rounds):
        before = process_time()
        for _ in range(times):
            part()
        spent.append(process_time() - before)
    return min(spent) / times * 1e6


def main() -> None:
    """Print the table. Whoever lists the mistakes on `recorded` has to replace it, so that is not possible here."""
    parser = argparse.ArgumentParser(description="Measure the detection of repetitions.")
    parser.add_argument("--recorded", action="store_true", help="measure on the conversations that nothing was developed on, too")
    parser.add_argument("--list", action="store_true", help="list the mistakes on the conversations of development")
    parser.add_argument("--cost", action="store_true", help="measure CPU time and size of the state instead")
    options = parser.parse_args()
    console = Console()
    if options.cost:
        console.print(cost())
        return
    files = DEVELOPMENT | (UNREAD if options.recorded else {})
    scores = {name: score(read(DATA / file)) for name, file in files.items()}
    console.print(table(scores))
    for name in DEVELOPMENT if options.list else ():
        for mistake in scores[name].mistakes:
            console.print(f"{name}: {mistake}", markup=False)


if __name__ == "__main__":
    main()
