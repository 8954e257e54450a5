"""Live spans of agents belong to the trace of the goal's log."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from ioa import Agent, TaskContext
from ioa.adapters.otlp import open_live_spans
from ioa.client.spans import GoalTrace
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import LOCAL, GoalName
from ioa.protocol.operation.trace import Span, span_id_of_goal
from ioa.telemetry import live_spans
from ioa.testing import ScriptedModel
from ioa_testkit import System
from ioa_testkit.finished import FinishedGoal
from tests.contract.agents.test_parts import ORDER, agent
from tests.rig.trace_receiver import trace_receiver

_WANTED = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
_UNWANTED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def _spans(got: Sequence[ExportTraceServiceRequest]) -> list[OtlpSpan]:
    return [span for one in got for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]


def _of_log(finished: FinishedGoal, *, with_live: bool = True) -> tuple[str, list[Span]]:
    made = GoalTrace(with_live=with_live)
    spans = [span for stored in finished.log for span in made.read(stored)]
    return made.trace_id, spans


def _counter(current: list[str]) -> Agent:
    counter = Agent("counter", description="counts the words of a text", examples=["count the words"])

    @counter.task
    def count(task: str, ctx: TaskContext) -> str:
        current.append(f"{trace.get_current_span().get_span_context().span_id:016x}")
        ctx.search("somebody who draws charts").result()
        if "twice" in task:
            raise RuntimeError("secret words")
        return "three"

    return counter


@pytest.mark.parametrize("fails", [False, True])
async def test_an_authors_function_and_its_searches_are_parts_of_its_task(ioa_system: System, *, fails: bool) -> None:
    """In the goal's own trace, below the span that the log gives the task; what a framework traces hangs below the function."""
    got, current = list[ExportTraceServiceRequest](), list[str]()
    goal = GoalOrder(goal="count the words twice" if fails else "count the words", agent="counter")
    with trace_receiver(got) as url:
        async with open_live_spans(_WANTED, "test", url):
            finished = await ioa_system.run(goal, agents=[_counter(current)])
    trace_id, made = _of_log(finished)
    live = {span.name: span for span in _spans(got) if span.parent_span_id.hex() != _root(finished)}
    task = next(span for span in made if span.name == "task")
    function = live["invoke_agent counter"]
    assert {span.trace_id.hex() for span in _spans(got)} == {trace_id}
    assert (function.parent_span_id.hex(), live["search"].parent_span_id) == (task.span_id, function.span_id)
    assert current == [function.span_id.hex()]
    about = {one.key: one.value.string_value for one in function.attributes}
    assert (about["gen_ai.agent.id"], about["gen_ai.agent.name"]) == ("counter", "counter")
    assert (function.status.code == Status.STATUS_CODE_ERROR, function.status.message) == (fails, "RuntimeError" if fails else "")
    assert "words" not in str(_spans(got))


def _root(finished: FinishedGoal) -> str:
    return span_id_of_goal(GoalName(LOCAL, finished.result.goal_id))


async def test_model_calls_are_live_spans_of_their_group(ioa_system: System) -> None:
    """Below their group, each once: a gateway that exports the goal leaves out what its agents have exported themselves."""
    said = json.dumps({"decision": {"type": "DISCUSSION", "content": "Water at night.", "go": "end"}})
    end = json.dumps({"decision": {"type": "CONCLUDE", "goal_reached": True, "content": "Gardens are nice."}})
    model = ScriptedModel(lambda asked: end if "The discussion has ended" in asked.prompt else said)
    got = list[ExportTraceServiceRequest]()
    with trace_receiver(got) as url:
        async with open_live_spans(_WANTED, "test", url):
            finished = await ioa_system.run(
                ORDER, agents=[agent("host", "hosts talks", []), agent("flora", "gardens", [])], model=model
            )
    _, made = _of_log(finished)
    group = next(span for span in made if span.name == "group")
    calls = [span for span in _spans(got) if span.name == "chat model"]
    assert len(calls) == len(model.asked)
    attributes = {one.key: one.value.string_value for one in calls[0].attributes}
    assert (attributes["gen_ai.request.model"], attributes["gen_ai.provider.name"]) == ("model", "openai")
    assert group.span_id in {span.parent_span_id.hex() for span in calls}
    assert "chat model" in {span.name for span in made}
    assert not [span for span in _of_log(finished, with_live=False)[1] if span.name.startswith("chat")]


async def test_goal_without_tracing_has_no_live_spans(ioa_system: System) -> None:
    """Neither without an endpoint, nor of a goal whose launcher wants no trace."""
    got = list[ExportTraceServiceRequest]()
    with trace_receiver(got) as url:
        async with open_live_spans({}, "test", url):
            assert not live_spans.is_traced()
        async with open_live_spans(_WANTED, "test", url):
            assert live_spans.is_traced()
            goal = GoalOrder(goal="count the words", agent="counter", traceparent=_UNWANTED)
            await ioa_system.run(goal, agents=[_counter([])])
    assert (_spans(got), live_spans.is_traced()) == ([], False)
