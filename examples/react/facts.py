"""A graph of facts in a file, and queries of it.

A query only reads, and only this graph: what would ask another server is refused, since that reaches whatever this machine reaches.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, QueryTriples, RdfFormat, Store, Triple

from ioa import InvalidInputError

MAX_ROWS = 100
MAX_CHARS, MAX_VALUE_CHARS = 20_000, 4_000
"""How much is told of an entity or of what a query finds, which is more than a model is shown, and of one value."""
_ELSEWHERE = re.compile(r"service|\\u", re.IGNORECASE)
"""The keyword, which the parser finds without a gap before or behind it, or an escape that may spell it."""
_MORE = f"… more than {MAX_CHARS:,} characters; ask for less."
_LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")


def answer(path: Path, query: str) -> str:
    """Answer a SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE."""
    if _ELSEWHERE.search(query):
        raise InvalidInputError(
            r"A query may hold neither SERVICE, within a word either, nor \u: it asks this graph alone.",
            hint="find_entity finds entities by their names.",
        )
    try:
        found = _store(path).query(query)
    except SyntaxError as error:
        raise InvalidInputError(f"This is no SPARQL query: {error.msg}.") from None
    if isinstance(found, QueryBoolean):
        return "yes" if found else "no"
    if isinstance(found, QueryTriples):
        return _rows([], ((triple.subject, triple.predicate, triple.object) for triple in found))
    return _rows([f"?{variable.value}" for variable in found.variables], found)


def named(path: Path, name: str, limit: int) -> str:
    """Return the facts about entities with this name, or with a name that contains it; the nearest names come first."""
    labels = [
        (quad.object.value, quad.subject)
        for quad in _store(path).quads_for_pattern(None, _LABEL, None)
        if isinstance(quad.object, Literal) and name.casefold() in quad.object.value.casefold()
    ]
    labels.sort(key=lambda one: (len(one[0]), str(one[1])))
    entities = list(dict.fromkeys(entity for _, entity in labels))[:limit]
    return "\n\n".join(f"{entity}\n{_about(path, entity)}" for entity in entities) or f"Nothing is called {name!r}."


def _about(path: Path, entity: NamedNode | BlankNode | Triple) -> str:
    known = _store(path).quads_for_pattern(entity, None, None)
    return _rows([], sorted(((quad.predicate, quad.object) for quad in known), key=str))


@cache
def _store(path: Path) -> Store:
    store = Store()
    store.bulk_load(path=path, format=RdfFormat.TURTLE)
    return store


def _rows(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as lines: the values of literals as they are, IRIs in angle brackets as a query wants them."""
    lines, left = list[str](), MAX_CHARS
    for row in islice(rows, MAX_ROWS + 1):
        line = "\t".join(map(_shown, row))
        left -= len(line)
        if len(lines) == MAX_ROWS or left < 0:
            lines += [line[: len(line) + left], _MORE] if left < 0 else [f"… more than {MAX_ROWS} rows; ask for less."]
            break
        lines.append(line)
    return "\n".join(["\t".join(head), *(lines or ["Nothing."])] if head else lines) or "Nothing."


def _shown(value: Any) -> str:
    text = value.value if isinstance(value, Literal) else str(value or "")
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
