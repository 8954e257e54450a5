"""Answer from a graph of facts, by SPARQL 1.1 queries of its own. `KNOWLEDGE` names the graph, a file in Turtle."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ioa import Agent, TaskContext
from ioa.react import ReactAgent, tool


@dataclass(frozen=True)
class Graph:
    """The tools over one graph. They may be called from any thread."""

    path: Path

    def sparql(self, query: str, ctx: TaskContext) -> str:
        """Ask the graph by a SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE.

        Args:
            query: The query, with its prefixes. Numbers can be compared and added up in it.
            ctx: The task.
        """
        from facts import answer  # loads the store, which an idle agent does not need

        return answer(self.path, query)

    def find_entity(self, name: str, ctx: TaskContext, limit: Annotated[int, Field(ge=1, le=20)] = 5) -> str:
        """Find entities with this name, or with a name that contains it, and return their facts. The nearest names come first.

        Args:
            name: A name or a part of it; case does not count.
            ctx: The task.
            limit: Maximum number of entities.
        """
        from facts import named

        return named(self.path, name, limit)


def knowledge(path: Path) -> Agent:
    """Create the agent of a graph."""
    graph = Graph(path)
    return ReactAgent(
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
