"""The detector on conversations that were written to try it; `recorded` is measured by the benchmark alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from ioa.group.lexicon import feature_of
from ioa.group.repetition import LOOKBACK, repeated
from ioa.group.sketch import Remembered, Sketch, sketch_of
from ioa.group.wording import wording_of


def _name_in(names: Sequence[set[int]], earlier: Remembered) -> set[int]:
    return names[earlier.who]


def _written(file: str) -> Iterator[tuple[bool, bool]]:
    """For each message of the conversations of a file, whether it is a repetition and whether it is refused."""
    lines = (Path(__file__).parents[2] / "data" / "repetition" / file).read_text(encoding="utf-8").splitlines()
    for _, conversation in groupby(map(json.loads, lines), key=lambda message: message["conversation"]):
        heard: tuple[Sketch, ...] = ()
        speakers: list[str] = []
        for message in conversation:
            if message["by"] not in speakers:
                speakers.append(message["by"])
            wording, by = wording_of(message["text"]), speakers.index(message["by"])
            names = [{feature_of(speaker)} for speaker in speakers]
            refused = repeated(wording, by, heard, partial(_name_in, names)) is not None
            if not refused:
                heard = (*heard, sketch_of(wording, by, message["n"]))[-LOOKBACK:]
            yield "of" in message, refused


@pytest.mark.parametrize(
    ("file", "least_caught"), [("tuning.jsonl", 0.9), ("held_out.jsonl", 0.95), ("pairs.jsonl", 0.85), ("fresh.jsonl", 0.75)]
)
def test_written_conversations_are_told_apart(file: str, least_caught: float) -> None:
    """Most repetitions are refused and at most one in forty of the others; docs/benchmarks.md has the exact figures."""
    messages = list(_written(file))
    caught = [refused for repeats, refused in messages if repeats]
    wrong = [refused for repeats, refused in messages if not repeats]
    assert sum(caught) >= least_caught * len(caught) and sum(wrong) <= 0.025 * len(wrong)
