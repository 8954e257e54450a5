"""The sweep: all that reads texts of outsiders, by all that such texts are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgpack

from tests.unit.growth.measuring import Making
from tests.unit.growth.readers import BYTES, TEXTS, Reader, as_json, bodies, reader_of, requests
from tests.unit.growth.shapes import Shape
from tests.unit.growth.teams import TEAMS, team_file
from tests.unit.growth.textures import UNITS, payloads, text_of

TOLD = {
    "LaunchGroup": {"team": team_file([{"name": "n", "roles": ["a"]}], 0)},
    "PutTeam": {"team": team_file([{"name": "n", "roles": ["a"]}], 0)},
    "GoalOrder": {"team": team_file([{"name": "n", "roles": ["a"]}], 0)},
}
"""What is read in another form than its shape tells: teams, which `TEAMS` grows."""


class Case(NamedTuple):
    """Something that is read, made of something.

    Attributes:
        reader: What reads it.
        texture: What it is made of.
        make: Makes it, of a size.
        most: How large it may be.
    """

    reader: str
    texture: str
    read: Callable[[Any], object]
    make: Making
    most: int


def cases_of_texts(reader: Reader, most: int) -> Iterator[Case]:
    """Yield what texts are read of, up to a size."""
    for name, unit in UNITS.items():
        make = lambda size, salt, unit=unit: text_of(unit, size, salt)  # noqa: E731
        yield Case(reader.name, name, reader.read, make, min(most, reader.most))


def cases_of_bytes(reader: Reader, most: int) -> Iterator[Case]:
    """Yield what bytes are read of: texts, and what is none."""
    for name, unit in UNITS.items():
        make = lambda size, salt, unit=unit: text_of(unit, size // len(unit.encode()) * len(unit), salt).encode()  # noqa: E731
        yield Case(reader.name, name, reader.read, make, min(most, reader.most))
    yield from _cases_of_payloads(reader, most)


def _cases_of_payloads(reader: Reader, most: int) -> Iterator[Case]:
    for number, (name, _) in enumerate(payloads(64)):
        make = lambda size, _salt, number=number: payloads(size)[number][1]  # noqa: E731
        yield Case(reader.name, name, reader.read, make, min(most, reader.most))


def cases_of_request(name: str, most: int) -> Iterator[Case]:
    """Yield what a request to a service is read of."""
    reader, shape = reader_of(requests()[name]), Shape(requests()[name], TOLD.get(name))
    for place, grown in shape.grown():
        make = lambda size, salt, grown=grown: msgpack.packb(grown(size, salt))  # noqa: E731
        yield Case(name, place, reader.read, make, min(most, reader.most))
    yield from _cases_of_payloads(reader, most)


def cases_of_body(route: str, most: int) -> Iterator[Case]:
    """Yield what a body by HTTP is read of."""
    kind, read = bodies()[route]
    if kind.__name__ == "TeamBody":
        for name, file in TEAMS.items():
            make = lambda size, salt, file=file: as_json(file(size, salt))  # noqa: E731
            yield Case(route, name, read, make, min(most, 250_000))
        return
    for place, grown in Shape(kind, TOLD.get(kind.__name__)).grown():
        make = lambda size, salt, grown=grown: as_json(grown(size, salt))  # noqa: E731
        yield Case(route, place, read, make, min(most, 250_000))


def all_cases(most: int) -> Iterator[Case]:
    """Yield everything."""
    for reader in TEXTS:
        yield from cases_of_texts(reader, most)
    for reader in BYTES:
        yield from cases_of_bytes(reader, most)
    for name in requests():
        yield from cases_of_request(name, most)
    for route in bodies():
        yield from cases_of_body(route, most)


def cases(most: int) -> dict[str, list[Case]]:
    """Everything by its reader."""
    found: dict[str, list[Case]] = {}
    for case in all_cases(most):
        found.setdefault(case.reader, []).append(case)
    return found
