"""The message for a goal of which nothing was done: why, one list that works, and the agents that do not run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from math import isfinite

from ioa.agent.rules.list_plan import has_items
from ioa.errors import IoaError
from ioa.ports.brain import FileReader
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact

_MAX_FILE_BYTES = 1_000_000
"""Maximum size of a CSV file that is read for the names of its columns."""
_SAMPLED_ROWS = 20
_MAX_LIST_LINES = 3
"""Maximum lines of the list, since a rejection has at most eight: reasons 3, heading 1, list 3, left out 1."""
_PLACEHOLDER = re.compile(r"\b(?:NUMBER|COLUMN|FILE(?P<suffix>\.\w+)?)\b")
"""Placeholders in an example of a card: a numeric and another column of the user's CSV file, and a file of the goal."""


async def advice(cards: Sequence[AgentCard], inputs: Sequence[Artifact], files: FileReader, left_out: str) -> list[str]:
    """Return lines with one list that works, made from the nearest agent's example, and with the agents that do not run."""
    examples = [example for card in cards for example in islice(filter(_is_goal, card.examples), 1)]
    columns = await _columns(inputs, files) if any(_PLACEHOLDER.search(example) for example in examples) else {}
    filled = [_filled(example, inputs, columns) for example in examples]
    works = next((example for example in filled if not _PLACEHOLDER.search(example)), None)
    lines = [f"Not running: {left_out}"] if left_out else []
    if works is not None:
        return ["This works:", *works.splitlines()[:_MAX_LIST_LINES], *lines]
    if filled:  # the goal came without the file that each example needs
        return ["With a file (--input FILE) and its columns this works:", *filled[0].splitlines()[:_MAX_LIST_LINES], *lines]
    return lines


def _is_goal(example: str) -> bool:
    """Return whether an example can be a goal: it is a list, or uses no result."""
    return has_items(example) or "#" not in example


def _filled(example: str, inputs: Sequence[Artifact], columns: Mapping[str, str]) -> str:
    def name(found: re.Match[str]) -> str:
        if found[0] in columns:
            return columns[found[0]]
        suffix = found["suffix"] or ""
        is_file = found[0].startswith("FILE")
        return next((one.name for one in inputs if is_file and one.name.lower().endswith(suffix)), found[0])

    return _PLACEHOLDER.sub(name, example)


async def _columns(inputs: Sequence[Artifact], files: FileReader) -> dict[str, str]:
    """Return the first column of numbers of the first CSV file, and the other column with the fewest values."""
    table = next((one for one in inputs if one.name.lower().endswith(".csv")), None)
    if table is None or table.size_bytes > _MAX_FILE_BYTES:
        return {}
    try:
        text = (await files.get_file(table)).decode("utf-8-sig")
        header, *rows = csv.reader(io.StringIO(text), csv.Sniffer().sniff(text[:10_000], ",;\t|"))
    except (IoaError, UnicodeDecodeError, csv.Error, ValueError):
        return {}
    values = {name: {row[at] for row in rows[:_SAMPLED_ROWS] if at < len(row)} for at, name in enumerate(header) if name.strip()}
    number = next((name for name, cells in values.items() if cells and all(map(_is_number, cells))), None)
    if number is None or len(values) < 2:
        return {}
    return {"NUMBER": number, "COLUMN": min((name for name in values if name != number), key=lambda name: len(values[name]))}


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False
