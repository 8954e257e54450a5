"""Traces of goals as a gateway exports them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ioa.adapters.otlp import export_spans, is_wanted
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalId
from ioa.protocol.messages import Discussion
from ioa.protocol.operation.trace import Span
from ioa_gateway.trace_export import TraceExport
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, Members, order
from tests.rig.deadline import eventually
from tests.rig.trace_receiver import trace_receiver


async def _ended(plane: Plane, members: Members, traceparent: str = "") -> GoalResult:
    await plane.client.submit(order(traceparent=traceparent))
    await members.launch()
    await members.conclude(ADA, "Ten.")
    return await plane.client.wait_for_result(GOAL)


async def test_each_goal_that_ends_is_exported(plane: Plane, members: Members) -> None:
    """As one trace, and with the same ids if it is exported twice, such as by the next replica; one that fails holds up none."""
    fails = [True]

    def export(trace_id: str, spans: Sequence[Span], *, to: str) -> None:
        if fails and fails.pop():
            raise UnavailableError("The trace was not exported.")
        export_spans(trace_id, spans, to)

    got = list[ExportTraceServiceRequest]()
    result = await _ended(plane, members)
    with trace_receiver(got) as url:
        traces = TraceExport(plane.client, partial(export, to=url))
        async with beside(traces.keep()):
            for _ in range(3):
                traces.ended(result)
            await eventually(lambda: len(got) == 2)
    spans = [[span for of in one.resource_spans for scope in of.scope_spans for span in scope.spans] for one in got]
    assert len({span.trace_id for one in spans for span in one}) == 1
    assert [span.span_id for span in spans[0]] == [span.span_id for span in spans[1]]
    assert {span.name for span in spans[0]} >= {"goal", "group", "turn CONCLUSION"}


async def test_a_trace_that_is_not_wanted_stays(plane: Plane, members: Members) -> None:
    """Of a goal whose launcher wants no trace, nothing is exported, and without an endpoint nothing at all."""
    taken = list[str]()
    traces = TraceExport(plane.client, lambda trace_id, _spans: taken.append(trace_id))
    result = await _ended(plane, members, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
    await traces.export(result.name)
    assert (taken, is_wanted({}), is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"})) == ([], False, True)


async def test_trace_of_a_goal_is_read(http: httpx.AsyncClient, members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    """It contains ended spans; the whole trace has the goal as its root. Above the limit, the hint names the command for it."""
    goal_id = (await http.post("/goals", json={"goal": "Count.", "agent": "ada"})).json()["goal_id"]
    none = (await http.get(f"/goals/{goal_id}/trace")).json()
    room = (await members.launch(GoalId(goal_id))).state.comm_id
    await members.say(ADA, Discussion(content="One?", next_speaker=BOB), room)
    part = (await http.get(f"/goals/{goal_id}/trace")).json()
    await members.say(BOB, Discussion(content="Two!", next_speaker=ADA), room)
    await members.conclude(ADA, "Ten.", room)
    await http.get(f"/goals/{goal_id}/result?wait=5")
    whole = (await http.get(f"/goals/{goal_id}/trace")).json()
    assert (none["spans"], none["ended"], [span["name"] for span in part["spans"]]) == ([], False, ["turn DISCUSSION"])
    assert (whole["ended"], whole["trace_id"], whole["spans"][0]) == (True, part["trace_id"], part["spans"][0])
    assert [span["name"] for span in whole["spans"] if not span["parent_id"]] == ["goal"]
    assert "One?" not in str(whole)
    assert (await http.get("/goals/none/trace")).status_code == 404
    monkeypatch.setattr("ioa_gateway.trace_export.MOST_SPANS", 0)
    rejected = await http.get(f"/goals/{goal_id}/trace")
    assert (rejected.status_code, rejected.json()["hint"]) == (413, "`ioa trace export` exports it.")
