"""The trace of a goal: its spans, and their export by OpenTelemetry."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from structlog.testing import capture_logs

from ioa.adapters.otlp import export_spans
from ioa.client.history import conversation
from ioa.client.spans import GoalTrace
from ioa.concurrency import beside
from ioa.ports.group_log import StoredEntry
from ioa.protocol.decisions import ModelCall
from ioa.protocol.ids import LOCAL, GoalName, PoolId, comm_id_of_task
from ioa.protocol.messages import Discussion, InformTaskResult, SyncTaskAssignment, TaskOutcome, TaskSpec
from ioa.protocol.operation.trace import Span, span_id_of_goal, trace_id_of, trace_of_goal
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.usage import Usage
from ioa_testkit.planes import open_plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, TASK, Members, order
from tests.rig.deadline import eventually
from tests.rig.nats_accounts import SharedNats
from tests.rig.trace_receiver import trace_receiver

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ROOT = span_id_of_goal(GoalName(LOCAL, GOAL))


async def _log(nats: SharedNats, result: InformTaskResult | None = None, traceparent: str = "") -> Sequence[StoredEntry]:
    """Return the log of a goal whose task Bob does, by a nested group without a result."""
    with capture_logs():
        async with nats.account() as url, open_plane(url) as plane:
            members = Members(plane)
            async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)):
                await members.register(ADA, BOB)
                await plane.client.submit(order(traceparent=traceparent))
                await members.launch()
                first = TaskSpec(task_id=TASK, assignee=BOB, task_desc="Count.")
                await members.say(ADA, SyncTaskAssignment(tasks=(first,)))
                if result is not None:
                    await members.say(BOB, result)
                else:
                    nested = comm_id_of_task(ROOM, TASK)
                    await members.launch(parent=ParentTask(comm_id=ROOM, task_id=TASK))
                    await members.say(BOB, Discussion(content="You count.", next_speaker=ADA), nested)
                    await members.conclude(ADA, "Five.", nested)
                    await eventually(lambda: plane.client.group(ROOM), lambda found: not found.state.open_tasks)
                await members.conclude(ADA, "Ten.")
                await plane.client.wait_for_result(GOAL)
                return await conversation(plane.client, ROOM)


def _spans(trace: GoalTrace, log: Sequence[StoredEntry]) -> list[Span]:
    return [span for stored in log for span in trace.read(stored)]


def _tree(spans: Sequence[Span], above: str, depth: int = 0) -> list[str]:
    below = sorted((span for span in spans if span.parent_id == above), key=lambda span: (span.start, span.end))
    return [line for span in below for line in ("  " * depth + span.name, *_tree(spans, span.span_id, depth + 1))]


async def test_a_goal_with_a_nested_team_is_one_tree(shared_nats: SharedNats) -> None:
    """It shows the turns, the waits for tasks, and the nested group within its task."""
    trace = GoalTrace()
    spans = _spans(trace, await _log(shared_nats))
    assert (trace.trace_id, trace.is_sampled) == (trace_id_of(trace_of_goal(GoalName(LOCAL, GOAL), "")), True)
    assert _tree(spans, "") == [
        "goal",
        "  group",
        "    turn SYNC_TASK_ASSIGNMENT",
        "    task",
        "      group",
        "        turn DISCUSSION",
        "        turn CONCLUDE_GROUP_DISCUSSION",
        "        turn CONCLUSION",
        "    turn CONCLUDE_GROUP_DISCUSSION",
        "    turn CONCLUSION",
    ]
    assert len({span.span_id for span in spans}) == len(spans)
    assert all(span.start <= span.end and not span.failure for span in spans)


async def test_failures_and_model_calls_are_spans_of_the_given_trace(shared_nats: SharedNats) -> None:
    """Each call is a span with its usage, and no span contains text of a member. An export again has the same ids."""
    calls = (ModelCall(purpose="task", came_to="cut", milliseconds=40, usage=Usage(tokens_in=7)), ModelCall(purpose="task"))
    failed = InformTaskResult(task_id=TASK, outcome=TaskOutcome.FAILED, task_conclusion="no vase", calls=calls)
    log = await _log(shared_nats, failed, traceparent=GIVEN)
    trace, got = GoalTrace(), list[ExportTraceServiceRequest]()
    spans = _spans(trace, log)
    [task], [goal] = ([span for span in spans if span.name == name] for name in ("task", "goal"))
    asked = [span for span in spans if span.name == "chat"]
    assert (trace.trace_id, goal.parent_id, goal.span_id) == (GIVEN[3:35], GIVEN[36:52], ROOT)
    assert (task.failure, [value for span in spans for value in span.attributes.values() if "vase" in str(value)]) == ("failed", [])
    assert [(span.parent_id, span.failure, span.attributes.get("gen_ai.usage.input_tokens")) for span in asked] == [
        (task.span_id, "cut", 7),
        (task.span_id, "", None),
    ]
    assert all(task.start <= span.start <= span.end <= task.end for span in asked)
    with trace_receiver(got) as endpoint:
        for _ in range(2):
            export_spans(trace.trace_id, _spans(GoalTrace(), log), endpoint)
    first, again = ([*request.resource_spans[0].scope_spans[0].spans] for request in got)
    assert [span.SerializeToString() for span in first] == [span.SerializeToString() for span in again]
    exported = [(span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name) for span in first]
    assert exported == [(trace.trace_id, span.span_id, span.parent_id, span.name) for span in spans]
    assert [(span.name, span.kind) for span in first if span.status.code == 2] == [("task", 1), ("chat", 3)]
    names = {attribute.key: span.name for span in first for attribute in span.attributes if attribute.key.startswith("gen_ai.")}
    assert set(names.values()) == {"chat"}, "internal spans have attributes of IoA only"
    assert [one.value.string_value for one in got[0].resource_spans[0].resource.attributes if one.key == "service.name"] == ["ioa"]


async def test_a_trace_that_its_launcher_does_not_sample_is_not_sampled(shared_nats: SharedNats) -> None:
    """The flag of the given `traceparent` decides."""
    unwanted = GoalTrace()
    _spans(unwanted, await _log(shared_nats, InformTaskResult(task_id=TASK, task_conclusion="Ten."), f"{GIVEN[:-2]}00"))
    assert not unwanted.is_sampled
