"""Files that nobody has seen before: names, columns and values come from a seed that is printed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pandas as pd

_ONSETS = ("v", "t", "br", "k", "dr", "m", "gl", "f", "st", "r", "l", "p")
_NUCLEI = ("a", "e", "o", "i", "u")
_CODAS = ("lm", "r", "sk", "nd", "x", "th", "nt", "l", "rk", "m")
_KINDS = ("harbour", "orchard", "workshop", "valley", "carrier", "depot", "choir", "vineyard")
_GROUPS = ("cargo", "grade", "season", "vessel", "variety", "material")
_AMOUNTS = ("crates", "tonnage", "bottles", "mileage", "attendance", "voltage", "thickness", "pallets", "rainfall")
_FILES = ("landings", "harvest", "logbook", "roster", "gauges", "shipments")
_SUBJECTS = ("The ferryman", "A young surveyor", "The council", "Our neighbour", "The old clockmaker", "Nobody in the village")
_ACTS = ("repaired", "measured", "painted", "forgot", "described", "carried")
_THINGS = ("the copper bell", "a crooked bridge", "three lanterns", "the northern dike", "every ladder", "the winter stores")
_WHEN = (
    "before the first frost",
    "during the long regatta",
    "after the market closed",
    "while the river rose",
    "on a quiet Sunday",
)


@dataclass(frozen=True)
class World:
    """A table with two groupings, two amounts and a day, a text, and a letter of several paragraphs."""

    frame: pd.DataFrame
    table: Path
    kind: str
    group: str
    amount: str
    other: str
    text: Path
    letter: Path

    def sums(self, by: str, amount: str) -> dict[str, float]:
        """The truth about totals."""
        return {str(key): float(value) for key, value in self.frame.groupby(by)[amount].sum().items()}

    def means(self, by: str, amount: str) -> dict[str, float]:
        """The truth about averages."""
        return {str(key): float(value) for key, value in self.frame.groupby(by)[amount].mean().items()}


def create_world(seed: int, folder: Path) -> World:
    """Make everything and write the files."""
    chance = random.Random(seed)
    kind, group = chance.choice(_KINDS), chance.choice(_GROUPS)
    amount, other = chance.sample(_AMOUNTS, 2)
    places = _names(chance, 5)
    groups = _names(chance, 3)
    first_day = date(2023, 1, 1) + timedelta(days=chance.randrange(200))
    rows = [
        {
            kind: chance.choice(places) if number >= len(places) else places[number],
            group: chance.choice(groups),
            "day": (first_day + timedelta(days=number * 2)).isoformat(),
            amount: chance.randrange(3, 900),
            other: round(chance.uniform(1, 80), 2),
        }
        for number in range(chance.randrange(60, 140))
    ]
    frame = pd.DataFrame(rows)
    table = folder / f"{chance.choice(_FILES)}.csv"
    frame.to_csv(table, index=False)
    text = folder / f"{_name(chance).lower()}.txt"
    text.write_text(" ".join(_sentences(chance, 14)), encoding="utf-8")
    letter = folder / f"{_name(chance).lower()}.md"
    letter.write_text("\n\n".join(_sentences(chance, 5)), encoding="utf-8")
    return World(frame, table, kind, group, amount, other, text, letter)


def _name(chance: random.Random) -> str:
    syllables = (chance.choice(_ONSETS) + chance.choice(_NUCLEI) for _ in range(2))
    return ("".join(syllables) + chance.choice(_CODAS)).capitalize()


def _names(chance: random.Random, count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names[_name(chance)] = None
    return list(names)


def _sentences(chance: random.Random, count: int) -> list[str]:
    combinations = [(who, act, what, when) for who in _SUBJECTS for act in _ACTS for what in _THINGS for when in _WHEN]
    return [f"{who} {act} {what} {when}." for who, act, what, when in chance.sample(combinations, count)]
