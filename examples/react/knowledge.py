"""Answer from a graph of facts, by SPARQL 1.1 queries of its own. `KNOWLEDGE` names the graph, a file in Turtle.

A query only reads, and only this graph: what would ask another server is refused, since that reaches whatever this machine reaches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, QueryTriples, RdfFormat, Store, Triple

from ioa import Agent, InvalidInputError
from ioa.react import react_agent, tool

MAX_ROWS = 100
_ELSEWHERE = re.compile(r"\bservice\b|\\u", re.IGNORECASE)  # the keyword, or an escape that may spell it
_LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")


@dataclass(frozen=True)
class Graph:
    """The tools over one graph, which is read when it is first asked. They may be called from any thread."""

    path: Path

    def sparql(self, query: str) -> str:
        """Ask the graph by a SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE.

        Args:
            query: The query, with its prefixes. Numbers can be compared and added up in it.
        """
        if _ELSEWHERE.search(query):
            raise InvalidInputError(r"A query may hold neither SERVICE nor \u: it asks this graph alone.")
        try:
            found = self._store.query(query)
        except SyntaxError as error:
            raise InvalidInputError(f"This is no SPARQL query: {error.msg}.") from None
        if isinstance(found, QueryBoolean):
            return "yes" if found else "no"
        if isinstance(found, QueryTriples):
            return _rows([], ((triple.subject, triple.predicate, triple.object) for triple in found))
        return _rows([f"?{variable.value}" for variable in found.variables], found)

    def find_entity(self, name: str, limit: Annotated[int, Field(ge=1, le=20)] = 5) -> str:
        """Find what has this name, or a name that holds it, and tell all that the graph says of it. The nearest names come first.

        Args:
            name: A name or a part of it; case does not count.
            limit: How many to tell of.
        """
        labels = [
            (quad.object.value, quad.subject)
            for quad in self._store.quads_for_pattern(None, _LABEL, None)
            if isinstance(quad.object, Literal) and name.casefold() in quad.object.value.casefold()
        ]
        labels.sort(key=lambda one: (len(one[0]), str(one[1])))
        named = list(dict.fromkeys(entity for _, entity in labels))[:limit]
        return "\n\n".join(f"{entity}\n{self._about(entity)}" for entity in named) or f"Nothing is called {name!r}."

    def _about(self, entity: NamedNode | BlankNode | Triple) -> str:
        known = self._store.quads_for_pattern(entity, None, None)
        return _rows([], sorted(((quad.predicate, quad.object) for quad in known), key=str))

    @cached_property
    def _store(self) -> Store:
        store = Store()
        store.bulk_load(path=self.path, format=RdfFormat.TURTLE)
        return store


def _rows(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as lines: the values of literals as they are, IRIs in angle brackets as a query wants them."""
    lines = ["\t".join(map(_shown, row)) for row in islice(rows, MAX_ROWS + 1)]
    if len(lines) > MAX_ROWS:
        lines[MAX_ROWS:] = [f"… more than {MAX_ROWS} rows; ask for less."]
    return "\n".join(["\t".join(head), *(lines or ["Nothing."])] if head else lines) or "Nothing."


def _shown(value: Any) -> str:
    return value.value if isinstance(value, Literal) else str(value or "")


def knowledge(path: Path) -> Agent:
    """Make the agent of one graph."""
    graph = Graph(path)
    return react_agent(
        "knowledge-searcher",
        description="Answers from a knowledge graph by SPARQL: entities, their properties and how they are related.",
        examples=["find the mayor of a town in the knowledge graph", "which entities of the graph were founded before 1700"],
        tags=["knowledge graph", "sparql"],
        tools=[tool(graph.find_entity), tool(graph.sparql)],
        instructions="Begin with find_entity: it shows the IRIs and properties that a query needs. Two entities may have one name.",
        max_steps=5,
    )


agent = knowledge(Path(os.environ.get("KNOWLEDGE", "country/graph.ttl")))

if __name__ == "__main__":
    agent.run()
