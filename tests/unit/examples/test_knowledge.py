"""The tools over a graph of facts: a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from country import make_country
from ioa import InvalidInputError
from ioa.testing import RecordingContext
from knowledge import Graph

COUNTRY = make_country(1)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """The graph of a country."""
    (tmp_path / "graph.ttl").write_text(COUNTRY.triples)
    return Graph(tmp_path / "graph.ttl")


@pytest.fixture
def ctx(tmp_path: Path) -> RecordingContext:
    """A task."""
    return RecordingContext(tmp_path)


def test_sparql_query_returns_lines(graph: Graph, ctx: RecordingContext) -> None:
    """Each kind of query is answered, in lines; numbers can be reckoned with."""
    town = COUNTRY.towns[0]
    older = sum(one.founded < town.founded for one in COUNTRY.towns)
    select = "PREFIX : <http://country.test/> SELECT (COUNT(?town) AS ?n) { ?town :founded ?year FILTER(?year < %d) }"
    assert graph.sparql(select % town.founded, ctx) == f"?n\n{older}"
    assert graph.sparql("ASK { ?nobody <http://country.test/mayorOf> <http://country.test/Nowhere> }", ctx) == "no"
    assert graph.sparql("SELECT ?s { ?s <http://country.test/none> ?o }", ctx) == "?s\nNothing."
    built = graph.sparql(
        f"PREFIX : <http://country.test/> CONSTRUCT {{ ?m :rules ?t }} {{ ?m :mayorOf ?t FILTER(?t = :{town.name}) }}", ctx
    )
    assert built.split("\t")[1] == "<http://country.test/rules>"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * { SERVICE <http://127.0.0.1:8222/> { ?s ?p ?o } }", "neither SERVICE"),
        ("SELECT * { ?s ?p 1SERVICE <http://127.0.0.1:8222/> { ?x ?y ?o } }", "neither SERVICE"),
        ("SELECT * { ?s ?p 1sErViCe SILENT <http://127.0.0.1:8222/> { ?x ?y ?o } }", "neither SERVICE"),
        ("SELECT * { ?s ?p trueSERVICE <http://127.0.0.1:8222/> { ?x ?y ?o } }", "neither SERVICE"),
        ("SELECT * { {}SERVICE?where{ ?x ?y ?o } }", "neither SERVICE"),
        ("SELECT * { FILTER(1)SERVICE<http://127.0.0.1:8222/>{ ?x ?y ?o } }", "neither SERVICE"),
        (r"SELECT * { \u0053ERVICE <http://127.0.0.1:8222/> { ?s ?p ?o } }", "neither SERVICE"),
        ("INSERT DATA { <http://a.test/> <http://b.test/> 1 }", "no SPARQL query"),
    ],
)
def test_a_query_reads_this_graph_alone(query: str, why: str, graph: Graph, ctx: RecordingContext) -> None:
    """It changes nothing and asks no other server, however it spells that."""
    with pytest.raises(InvalidInputError, match=why):
        graph.sparql(query, ctx)
