"""A2A by the client of its library: a task is a goal, also if its message is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from ioa.errors import RateLimitedError
from ioa.protocol.ids import GoalId, TaskId
from ioa.protocol.messages import (
    AskUser,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.setup.charter import ParentTask
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, TASK, Members
from tests.integration.gateway.desk import QUESTION, open_desk
from tests.integration.gateway.serving import Door, key, root
from tests.integration.gateway.test_keys import bearer
from tests.integration.gateway.test_seats import said

NETWORK, POOL = "network", "agents/ada"
BINDINGS = pytest.mark.parametrize(
    ("binding", "version"), [(binding, version) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")]
)


@asynccontextmanager
async def speaking(
    http: httpx.AsyncClient, to: str = POOL, binding: str = "JSONRPC", version: str = "1.0", streams: bool = True
) -> AsyncIterator[Client]:
    """Open a client of the library from the card."""
    host = str(http.base_url).removesuffix("/v1/")
    headers = {"Authorization": http.headers["authorization"], **({"A2A-Version": version} if version != "0.3" else {})}
    async with httpx.AsyncClient(headers=headers, timeout=20, verify=False) as by:
        card = await A2ACardResolver(by, f"{host}/a2a/{to}").get_agent_card()
        if version == "0.3":
            del card.supported_interfaces[:2]
        yield ClientFactory(ClientConfig(streaming=streams, httpx_client=by, supported_protocol_bindings=[binding])).create(card)


def asking(
    message_id: str = "m1", text: str = "Count to ten.", *, task_id: str = "", context_id: str = "", waits: bool = True
) -> SendMessageRequest:
    """Return a message of a user: a new task with a file and a link, or an answer in a task."""
    files = [
        Part(raw=b"\x00\xff", filename="two.bin", media_type="application/octet-stream"),
        Part(url="https://example.com/x", filename="x"),
    ]
    parts = [Part(text=text), *([] if task_id else files)]
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=parts, task_id=task_id, context_id=context_id)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=not waits))


async def sent(client: Client, request: SendMessageRequest) -> Task:
    """Send a message and return the task that comes back first."""
    async for answer in client.send_message(request):
        return answer.task
    raise AssertionError("nothing came back")


@BINDINGS
async def test_task_is_followed_to_its_answer_and_files(
    http: httpx.AsyncClient, members: Members, binding: str, version: str
) -> None:
    """A client receives the messages and files of the agents; the log has the same entries by HTTP and by A2A."""
    seen: list[StreamResponse] = []
    async with speaking(http, binding=binding, version=version) as client:
        async for answer in client.send_message(asking()):
            seen.append(answer)
            if len(seen) == 1:
                room = (await members.launch(GoalId(answer.task.id))).state.comm_id
                await members.say(ADA, Discussion(content="One?", next_speaker=BOB), room)
                await members.say(BOB, Discussion(content="Two!", next_speaker=ADA), room)
                stored = (await http.put("/uploads/ten.txt", content=b"10")).json()
                await members.say(ADA, ConcludeGroupDiscussion(), room)
                await members.say(ADA, Conclusion.model_validate({"content": "Ten.", "artifacts": [stored]}), room)
        goal_id = seen[0].task.id
        again = await client.get_task(GetTaskRequest(id=goal_id))
    said = [one.status_update.status.message.parts[0].text for one in seen if one.status_update.status.message.parts]
    artifacts = {one.artifact_update.artifact.name: one.artifact_update.artifact for one in seen if one.HasField("artifact_update")}
    assert (said, sorted(artifacts)) == (["One?", "Two!", "Ten.", "Ten."], ["conclusion", "ten.txt"])
    assert (seen[-1].status_update.status.state, again.status.state) == (TaskState.TASK_STATE_COMPLETED,) * 2
    assert [one.name for one in again.artifacts] == ["ten.txt", "conclusion"]
    assert (await http.get(artifacts["ten.txt"].parts[0].url)).content == b"10"
    entries = (await http.get(f"/goals/{goal_id}/entries")).json()["entries"]
    told = [(str(one["seq"]), one["sender"], one["type"]) for one in entries]
    by_a2a = [one.status_update.metadata for one in seen if "ioa.seq" in one.status_update.metadata]
    assert [(one["ioa.seq"], one["ioa.sender"], one["ioa.type"]) for one in by_a2a] == told
    given = entries[0]["body"]["charter"]["inputs"]
    assert [(one["name"], one["size_bytes"]) for one in given] == [("two.bin", 2), ("x.url", len("https://example.com/x"))]


async def test_message_sent_again_returns_the_same_task(http: httpx.AsyncClient, members: Members) -> None:
    """A client that lost the answer sends its message again; tasks are listed by context and by entrance."""
    async with speaking(http) as client, speaking(http, NETWORK) as network:
        first = await sent(client, asking(context_id="talk", waits=False))
        room = (await members.launch(GoalId(first.id))).state.comm_id
        await members.conclude(ADA, "Ten.", room)
        again = await sent(client, asking(context_id="talk"))
        assert (again.id, again.context_id, again.status.state) == (first.id, "talk", TaskState.TASK_STATE_COMPLETED)
        other = await sent(network, asking(waits=False))
        with pytest.raises(InvalidParamsError):
            await sent(client, asking(text="Count to nine.", context_id="talk", waits=False))
        listed = [await client.list_tasks(ListTasksRequest(context_id=one)) for one in ("talk", "none", "")]
        assert ([[task.id for task in one.tasks] for one in listed], other.id != first.id) == ([[first.id], [], [first.id]], True)
        with pytest.raises(InvalidParamsError):
            await client.list_tasks(ListTasksRequest(page_token="none"))
    assert len((await http.get("/goals")).json()["goals"]) == 2


async def test_subscription_continues_after_the_task(http: httpx.AsyncClient, members: Members) -> None:
    """The first event contains the earlier messages, the others each later message and progress report once."""
    async with speaking(http) as client:
        task = await sent(client, asking(waits=False))
        room = (await members.launch(GoalId(task.id))).state.comm_id
        await members.say(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=TASK, assignee=BOB, task_desc="Add."),)), room)
        texts: list[str] = []
        async for answer in client.subscribe(SubscribeToTaskRequest(id=task.id)):
            if answer.HasField("task"):
                texts += [message.parts[0].text for message in answer.task.history]
                await members.say(BOB, InformTaskProgress(task_id=TASK, number=1), room)
            elif texts[-1] == "bob: Add.":
                await members.say(BOB, InformTaskProgress(task_id=TASK, number=2, fraction=0.4, content="Half."), room)
            texts += [part.text for part in answer.status_update.status.message.parts]
            if texts[-1] == "40% Half.":
                await members.say(BOB, InformTaskResult(task_id=TASK, task_conclusion="10"), room)
                await members.conclude(ADA, "Ten.", room)
        assert texts == ["Count to ten.", "bob: Add.", "40% Half.", "10", "Ten.", "Ten."]


async def test_cards_list_the_interfaces_of_both_versions(http: httpx.AsyncClient, members: Members) -> None:
    """The card of all agents is public and names none of them; the card of a pool needs a key."""
    host = str(http.base_url).removesuffix("/v1/")
    well_known = ".well-known/agent-card.json"
    async with httpx.AsyncClient(verify=False) as stranger:
        network = await stranger.get(f"{host}/a2a/network/{well_known}", headers={"A2A-Version": "1.0"})
        assert (await stranger.get(f"{host}/{well_known}", headers={"A2A-Version": "1.0"})).json() == network.json()
        refused = [
            await stranger.get(f"{host}/a2a/{POOL}/{well_known}"),
            await stranger.post(f"{host}/a2a/network", json={"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}),
        ]
    pool = await http.get(f"{host}/a2a/{POOL}/{well_known}")
    known = await http.get(f"{host}/a2a/{POOL}/{well_known}", headers={"If-None-Match": pool.headers["etag"]})
    missing = [await http.get(f"{host}/a2a/{one}") for one in (f"agents/none/{well_known}", "nowhere")]
    assert [one.status_code for one in (network, *refused, pool, known, *missing)] == [200, 401, 401, 200, 304, 404, 404]
    assert ("preferredTransport" in network.json(), "ada" in network.text) == (False, False)
    assert (pool.json()["description"], pool.json()["protocolVersion"]) == ("ada counts", "0.3")
    served = [(one["protocolBinding"], one["protocolVersion"]) for one in network.json()["supportedInterfaces"]]
    assert sorted(served) == [("HTTP+JSON", "0.3"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("JSONRPC", "1.0")]
    old = (await http.get(f"{host}/{well_known}", headers={"A2A-Version": "0.3"})).json()
    other = [one["transport"] for one in old["additionalInterfaces"]]
    assert (old["preferredTransport"], other, "supportedInterfaces" in old) == ("JSONRPC", ["HTTP+JSON"], False)


def answering(message_id: str, text: str, waits: bool = False, **given: object) -> SendMessageRequest:
    """Return an answer of a person, with fields and a choice."""
    parts = [Part(text=text), *([Part(data=ParseDict(given, Value()))] if given else [])]
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=parts, task_id=GOAL)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=not waits))


async def test_person_answers_by_a2a(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """A task needs input when a person of the caller has a turn; a message repeated in a later turn is one answer."""
    room = await open_desk(plane, members)
    await door.keys.put(key("anna", Scope.GOALS_READ, Scope.AGENTS_READ, "seats:anna"))
    await door.keys.put(key("eve", Scope.GOALS_READ, Scope.AGENTS_READ, "seats:eve"))
    http.headers["authorization"] = bearer("anna")["Authorization"]
    yes = answering("m1", "Yes.", fields={"agrees": True, "amount": 3}, choose="ask")
    async with speaking(http, NETWORK, streams=False) as client:
        task = await client.get_task(GetTaskRequest(id=GOAL))
        words, form = task.status.message.parts
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert (task.history[-1].parts[0].text, "Say what you think." in words.text) == (QUESTION, True)
        assert (MessageToDict(form.data)["item"]) == f"{room}.2"
        with pytest.raises(InvalidParamsError, match="The field agrees is missing"):
            await sent(client, answering("m0", "Yes."))
        assert [(await sent(client, yes)).status.state for _ in range(2)] == [TaskState.TASK_STATE_WORKING] * 2
        async with asyncio.TaskGroup() as side:
            waiting = side.create_task(sent(client, answering("m1", "Yes.", waits=True)))
            await members.say(ADA, Discussion(content="And two?"), room)
            assert (await waiting).status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await sent(client, answering("m2", "No.", fields={"agrees": False}))
        await sent(client, answering("m3", "", passes=True))
        task = await sent(client, answering("m4", "Three it is.", waits=True))
        assert (task.status.state, task.artifacts[-1].parts[0].text) == (TaskState.TASK_STATE_COMPLETED, "Three it is.")
        task = await sent(client, answering("m4", "Three it is."))
        own = [one.message_id for one in task.history if one.role == Role.ROLE_USER]
        assert (task.status.state, own[1:]) == (TaskState.TASK_STATE_COMPLETED, ["m1", "m2", "m4"])
    http.headers["authorization"] = bearer("eve")["Authorization"]
    async with speaking(http, NETWORK, streams=False) as client:
        with pytest.raises(UnsupportedOperationError):
            await sent(client, yes)
    assert await said(plane, room) == ["Yes.", "No.", "", "Three it is."]


@BINDINGS
async def test_stream_ends_with_a_question_which_is_answered_once(
    http: httpx.AsyncClient, members: Members, binding: str, version: str
) -> None:
    """A message sent again answers no later question; another message does. The history has the client's messages and ids."""

    async def ask(text: str) -> None:
        until = datetime.now(UTC) + timedelta(minutes=5)
        await members.say(ADA, AskUser(text=text, options=("yes", "no"), default="no", until=until), room)

    async def answer(message_id: str) -> TaskState:
        return (await sent(client, asking(message_id, "yes", task_id=goal_id, waits=False))).status.state

    texts = list[str]()
    async with speaking(http, binding=binding, version=version) as client:
        async for event in client.send_message(asking("m1")):
            if event.HasField("task"):
                goal_id = event.task.id
                room = (await members.launch(GoalId(goal_id))).state.comm_id
                await ask("Shall the copy go?")
            texts += [part.text for part in event.status_update.status.message.parts]
        said, words, _data = texts
        assert (said, "Shall the copy go?" in words) == ("Shall the copy go?", True)
        assert await answer("a1") == TaskState.TASK_STATE_WORKING
        await ask("Shall the original go?")
        assert [await answer(one) for one in ("a1", "a2")] == [TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_WORKING]
        task = await client.get_task(GetTaskRequest(id=goal_id))
    own = [(one.message_id, one.parts[0].text) for one in task.history if one.role == Role.ROLE_USER]
    assert own == [("m1", "Count to ten."), ("a1", "yes"), ("a2", "yes")]


async def test_question_of_a_nested_group_is_answered_by_client(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """The nested group asks the user of the goal, and reads the answer."""
    async with speaking(http) as client:
        task = await sent(client, asking("m1", waits=False))
        room = (await members.launch(GoalId(task.id))).state.comm_id
        spec = TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="Count to five.")
        await members.say(ADA, SyncTaskAssignment(tasks=(spec,)), room)
        nested = (await members.launch(GoalId(task.id), ParentTask(comm_id=room, task_id=spec.task_id))).state.comm_id
        until = datetime.now(UTC) + timedelta(minutes=5)
        await members.say(BOB, AskUser(text="From zero?", options=("yes", "no"), default="no", until=until), nested)
        asked = await client.get_task(GetTaskRequest(id=task.id))
        answered = await sent(client, asking("a1", "yes", task_id=task.id, waits=False))
    state = (await plane.client.group(nested)).state
    assert (asked.status.state, answered.status.state) == (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_WORKING)
    assert (state.phase, state.question) == (Phase.DISCUSSING, None)


_JURY = {
    "team": "jury",
    "leader": "clerk",
    "roles": {"clerk": ADA, "boss": {"human": "anna"}, "mate": {"human": "ben"}},
    "nodes": [
        {"name": "ask", "roles": ["clerk"], "max": 1, "then": "vote"},
        {"name": "vote", "roles": ["boss", "mate"], "turns": "together"},
    ],
}
"""Two people are asked at the same time."""


async def test_message_names_the_person_that_answers(plane: Plane, http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """If two people are asked, a message without a name is rejected."""
    room = await open_desk(plane, members, team=_JURY)
    await door.keys.put(key("both", Scope.GOALS_READ, "seats:anna", "seats:ben"))
    http.headers["authorization"] = bearer("both")["Authorization"]
    async with speaking(http, NETWORK, streams=False) as client:
        with pytest.raises(InvalidParamsError, match="by `seat` in a data part: anna, ben"):
            await sent(client, answering("m1", "No."))
        await sent(client, answering("m1", "No.", seat="ben"))
        with pytest.raises(UnsupportedOperationError):
            await sent(client, answering("m2", "Yes.", item=f"{room}.1"))
        task = await sent(client, answering("m2", "Yes."))
    people = [(one.metadata["ioa.sender"], one.parts[0].text) for one in task.history[1:] if one.role == Role.ROLE_USER]
    assert people == [("human-ben", "No."), ("human-anna", "Yes.")]


_SENT = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Count."}]}
_OLD = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "Count."}]}
_STREAMS: Mapping[tuple[str, str], tuple[str, object]] = {
    ("JSONRPC", "1.0"): ("", {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": _SENT}}),
    ("JSONRPC", "0.3"): ("", {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": _OLD}}),
    ("HTTP+JSON", "1.0"): ("/message:stream", {"message": _SENT}),
    ("HTTP+JSON", "0.3"): ("/v1/message:stream", {"message": {**_SENT, "parts": [], "content": _SENT["parts"]}}),
}


@BINDINGS
async def test_rejected_stream_has_an_http_status(
    http: httpx.AsyncClient, members: Members, plane: Plane, door: Door, monkeypatch: pytest.MonkeyPatch, binding: str, version: str
) -> None:
    """An unknown agent is 404, a missing scope 403, and too many goals 429 with the time to wait."""
    path, body = _STREAMS[binding, version]

    async def status(agent: str = "ada", key_id: str = "web") -> tuple[int, str | None]:
        headers = {"A2A-Version": version, **bearer(key_id)}
        answer = await http.post(f"{root(http)}/a2a/agents/{agent}{path}", json=body, headers=headers)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        return answer.status_code, answer.headers.get("retry-after")

    async def reject(*_order: object) -> NoReturn:
        raise RateLimitedError("Too many goals wait.", retry_after=timedelta(seconds=7))

    await door.keys.put(key("reader", Scope.GOALS_READ))
    assert [await status("none"), await status(key_id="reader")] == [(404, None), (403, None)]
    monkeypatch.setattr(plane.client, "launch", reject)
    assert await status() == (429, "7")


async def test_file_of_an_old_client_is_encoded_once(http: httpx.AsyncClient, members: Members) -> None:
    """By HTTP+JSON only Python's client encodes files twice; an invalid file is an error of the client."""
    headers, parts = {"A2A-Version": "0.3", "User-Agent": "node"}, [{"text": "Count."}, {"file": {"fileWithBytes": "eDE="}}]
    body = {"message": {**_SENT, "parts": [], "content": parts}, "configuration": {"blocking": False}}
    told = await http.post(f"{root(http)}/a2a/{POOL}/v1/message:send", json=body, headers=headers)
    [given] = (await http.get(f"/goals/{told.json()['task']['id']}")).json()["inputs"]
    assert given["size_bytes"] == 2
    headers["User-Agent"] = "python-httpx/1"
    refused = await http.post(f"{root(http)}/a2a/{POOL}/v1/message:stream", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
