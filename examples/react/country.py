"""An invented country, made by a seed: pages, a graph of facts, transcripts and a file, and a question that needs all of them.

No model remembers it, and another seed is another country. The answer is computed from the same facts that the sources are written
from, and each fact of the question is in a single source.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from transcripts import Line, store

_STARTS, _ENDS = "Tar Or Mel Vel Bru Cas Dor Fen Gal Hol Is Kor".split(), "nau le vik dam stow mere".split()
_FIRST, _LAST = "Ada Ivo Cy Una Bo Eli Fay Gus".split(), "Brome Lund Venn Ashe Dahl Moor Pike Quill".split()
_DISTRICTS = "North South East West Isles".split()
_TOWNS = 25
_MONTHS = range(1, 13)
_NS = "http://country.test/"


@dataclass(frozen=True)
class Town:
    """A town. Each of these facts is in one source: the graph, a page, the register, a transcript or the file."""

    name: str
    district: str
    mayor: str
    founded: int
    people: int
    road_km: int
    toll: int
    carts: tuple[int, ...]


@dataclass(frozen=True)
class Country:
    """All that there is to know of a country."""

    towns: tuple[Town, ...]
    asked: Town

    @property
    def question(self) -> str:
        """A goal that needs all four sources, as a list."""
        return (
            f"1. Find the town whose mayor is {self.asked.mayor} in the knowledge graph\n"
            "2. Find the toll agreed on by the council of #1 in the transcripts\n"
            "3. Look up the length of the roads of #1 in the register on the web site\n"
            "4. Compute with Python code for #1: #2 by #3 by the carts of all months in carts.csv"
        )

    @property
    def answer(self) -> str:
        """The correct answer."""
        return str(self.asked.toll * self.asked.road_km * sum(self.asked.carts))

    @property
    def pages(self) -> Mapping[str, str]:
        """The pages by their paths; the register has a form, which `registered` answers."""
        by_district = {name: [town for town in self.towns if town.district == name] for name in _DISTRICTS}
        links = "".join(f'<li><a href="/{name.lower()}">{name}</a></li>' for name in _DISTRICTS)
        pages = {"/": _page("The country", f'<ul>{links}<li><a href="/register">Register of roads</a></li></ul>')}
        for name, towns in by_district.items():
            rows = "".join(f"<tr><td>{town.name}</td><td>{town.people}</td></tr>" for town in towns)
            table = f"<table><tr><th>Town</th><th>People</th></tr>{rows}</table>"
            path = f"/{name.lower()}"
            pages[path] = _page(name, f'{table}<p><a href="/">Home</a> <a href="{path}/history">History</a></p>')
            oldest = min(towns, key=lambda town: town.founded)
            pages[f"{path}/history"] = _page(f"History of {name}", f'<p>{oldest.name} is the oldest.</p><a href="{path}">Back</a>')
        form = '<form method="post" action="/register"><label>Town <input name="town"></label><button>Look up</button></form>'
        pages["/register"] = _page("Register of roads", f'{form}<a href="/carts.csv">Carts by month</a>')
        return pages

    def registered(self, name: str) -> str:
        """Return what the form of the register answers."""
        known = next((town for town in self.towns if town.name.lower() == name.strip().lower()), None)
        said = f"{known.name} has {known.road_km} km of roads." if known else "There is no such town."
        return _page("Register of roads", f'<p>{said}</p><a href="/register">Another</a>')

    @property
    def triples(self) -> str:
        """The graph, in Turtle."""
        lines = [f"@prefix : <{_NS}> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
        lines += [f':{name} a :District ; rdfs:label "{name}" .' for name in _DISTRICTS]
        for town in self.towns:
            mayor = town.mayor.replace(" ", "_")
            lines.append(f':{town.name} a :Town ; rdfs:label "{town.name}" ; :in :{town.district} ; :founded {town.founded} .')
            lines.append(f':{mayor} a :Person ; rdfs:label "{town.mayor}" ; :mayorOf :{town.name} ; :since {town.founded + 200} .')
        return "\n".join(lines)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The transcripts: each council first speaks of a toll, and later agrees on another."""
        said = []
        for town in self.towns[:6]:
            council = f"council-{town.name.lower()}"
            said += [
                Line(council, 0, "Clerk", f"The council of {town.name} is open."),
                Line(council, 300, "Member", f"Let the toll of {town.name} be {town.toll + 2} crowns for each kilometre."),
                Line(council, 1_500, "Clerk", f"It is agreed: the toll of {town.name} is {town.toll} crowns for each kilometre."),
            ]
        return tuple(said)

    @property
    def carts(self) -> str:
        """The file, as CSV: how many carts came to each town in each month."""
        file = io.StringIO()
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["town", "month", "carts"])
        rows.writerows([town.name, month, carts] for town in self.towns for month, carts in zip(_MONTHS, town.carts, strict=True))
        return file.getvalue()

    def write(self, folder: Path) -> None:
        """Write the other sources into a folder: `graph.ttl`, `transcripts.sqlite`, `carts.csv`, and the question.

        Raises:
            sqlite3.OperationalError: There is a country in it already.
        """
        folder.mkdir(parents=True, exist_ok=True)
        store(folder / "transcripts.sqlite", self.lines)
        for name, text in {"graph.ttl": self.triples, "carts.csv": self.carts, "question.txt": self.question}.items():
            (folder / name).write_text(text, encoding="utf-8")


def make_country(seed: int) -> Country:
    """Make the country of a seed."""
    # A choice that is to be repeated, and no secret.
    dice = random.Random(seed)  # noqa: S311
    names = dice.sample([start + end for start in _STARTS for end in _ENDS], _TOWNS)
    mayors = dice.sample([f"{first} {last}" for first in _FIRST for last in _LAST], _TOWNS)
    towns = tuple(
        Town(
            name, _DISTRICTS[number % len(_DISTRICTS)], mayor, dice.randint(1200, 1800), dice.randint(400, 20_000),
            dice.randint(20, 90), dice.randint(3, 19), tuple(dice.randint(50, 400) for _ in _MONTHS),
        )
        for number, (name, mayor) in enumerate(zip(names, mayors, strict=True))
    )  # fmt: skip
    return Country(towns, dice.choice(towns[:6]))


def _page(title: str, body: str) -> str:
    return f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
