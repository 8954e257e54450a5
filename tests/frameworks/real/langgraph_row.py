"""LangGraph: a graph of one node, without a model."""

from typing import Any, TypedDict

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

from ioa import adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class State(TypedDict, total=False):
    """What the graph knows."""

    messages: list[Any]
    files: dict[str, bytes]


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt a graph around the foreign agent."""

    async def perform(state: State, config: RunnableConfig) -> State:
        files: dict[str, bytes] = {}
        usage, said = None, ""
        writer = get_stream_writer()
        async for deed in foreign.perform(state["messages"][0][1], config["configurable"]["thread_id"]):
            match deed:
                case ProgressStep(text):
                    writer(text)
                case Spent(tokens, answer_tokens):
                    usage = {"input_tokens": tokens, "output_tokens": answer_tokens, "total_tokens": tokens + answer_tokens}
                case Made(name, data):
                    files[name] = data
                case FinalAnswer(text):
                    said = text or ""
        return {"messages": [AIMessage(said, usage_metadata=usage)], "files": files}

    graph = StateGraph(State)
    graph.add_node("perform", perform)
    graph.add_edge(START, "perform")
    graph.add_edge("perform", END)
    return adopt.langgraph("graph", graph.compile(), description="Does its tasks")
