"""LangGraph: agents in a ring of nodes, with a checkpoint in SQLite after every step."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from clock import Clock


class Chat(TypedDict):
    """The state of the graph: the conversation."""

    messages: Annotated[list[str], operator.add]


def main() -> None:
    """Let the agents talk in turns."""
    clock = Clock()
    graph = StateGraph(Chat)
    names = [f"agent_{number}" for number in range(clock.members)]

    def speak(_chat: Chat) -> Chat:
        return {"messages": [clock.reply()]}

    def next_or_end(following: str) -> Callable[[Chat], str]:
        return lambda chat: END if len(chat["messages"]) >= clock.turns else following

    for number, name in enumerate(names):
        following = names[(number + 1) % len(names)]
        graph.add_node(name, speak)
        graph.add_conditional_edges(name, next_or_end(following), [following, END])
    graph.add_edge(START, names[0])
    folder = Path(clock.folder)
    folder.mkdir(parents=True, exist_ok=True)
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        config = {"configurable": {"thread_id": "chat"}, "recursion_limit": clock.turns + 10}
        graph.compile(checkpointer=saver).invoke({"messages": []}, config, durability="sync")
    clock.report()


main()
