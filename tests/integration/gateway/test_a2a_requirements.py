"""Requirements of A2A 1.0 for servers (MUST), in both bindings, by the library's client.

`docs/http.md` lists the checks of the protocol's test kit that do not pass, with the reasons.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count

import httpx
import pytest
from a2a.client import Client
from a2a.types import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from ioa.protocol.ids import GoalId
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import root
from tests.integration.gateway.test_a2a import POOL, sent, speaking


class _Wire:
    """A client in one binding, and the agents of its tasks."""

    def __init__(self, client: Client, members: Members) -> None:
        self.client = client
        self.members = members
        self._number = count(1)

    async def begin(self, *files: Part, task_id: str = "", context_id: str = "", text: str = "Count.") -> Task:
        """Send a message and return its task."""
        parts = [*([Part(text=text)] if text else []), *files]
        ids = {"message_id": f"m{next(self._number)}", "task_id": task_id, "context_id": context_id}
        message = Message(role=Role.ROLE_USER, parts=parts, **ids)
        return await sent(self.client, SendMessageRequest(message=message, configuration=_AT_ONCE))

    async def end(self, task_id: str) -> None:
        """Let the agents end a task."""
        await self.members.conclude(ADA, "Ten.", (await self.members.launch(GoalId(task_id))).state.comm_id)


_AT_ONCE = SendMessageConfiguration(return_immediately=True)


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
async def wire(request: pytest.FixtureRequest, http: httpx.AsyncClient, members: Members) -> AsyncIterator[_Wire]:
    """A client in one binding."""
    async with speaking(http, binding=request.param) as client:
        yield _Wire(client, members)


async def test_ended_task_takes_no_request(wire: _Wire) -> None:
    """CORE-SEND-002, CORE-CANCEL-002, STREAM-SUB-003."""
    task = await wire.begin()
    await wire.end(task.id)
    with pytest.raises(UnsupportedOperationError):
        await wire.begin(task_id=task.id)
    with pytest.raises(TaskNotCancelableError):
        await wire.client.cancel_task(CancelTaskRequest(id=task.id))
    with pytest.raises(UnsupportedOperationError):
        await anext(aiter(wire.client.subscribe(SubscribeToTaskRequest(id=task.id))))


async def test_only_a_malformed_media_type_is_rejected(wire: _Wire) -> None:
    """CORE-SEND-003; a file alone is a goal."""
    await wire.begin(Part(raw=b"1", media_type="application/vnd.apache.parquet; v=1"), text="")
    with pytest.raises(ContentTypeNotSupportedError):
        await wire.begin(Part(raw=b"1", media_type="parquet\r\nX: y"))
    assert len((await wire.client.list_tasks(ListTasksRequest())).tasks) == 1


async def test_unknown_task_is_not_found(wire: _Wire) -> None:
    """CORE-GET-002, CORE-CANCEL-003, STREAM-SUB-004, CORE-MULTI-004, PUSH-GET-002."""
    known = (await wire.begin()).id
    for asked in (
        wire.client.get_task(GetTaskRequest(id="none")),
        wire.client.cancel_task(CancelTaskRequest(id="none")),
        anext(aiter(wire.client.subscribe(SubscribeToTaskRequest(id="none")))),
        wire.begin(task_id="none"),
        wire.client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=known, id="none")),
    ):
        with pytest.raises(TaskNotFoundError):
            await asked


async def test_tasks_are_listed_in_pages(wire: _Wire) -> None:
    """CORE-LIST-002, CORE-LIST-004, CORE-LIST-005, HTTP_JSON-QP-001."""
    begun = [(await wire.begin()).id for _ in range(3)]
    await wire.end(begun[0])
    first = await wire.client.list_tasks(ListTasksRequest(page_size=2))
    last = await wire.client.list_tasks(ListTasksRequest(page_size=2, page_token=first.next_page_token))
    whole = await wire.client.list_tasks(ListTasksRequest(include_artifacts=True))
    assert [task.id for page in (first, last) for task in page.tasks] == begun[::-1]
    assert (bool(first.next_page_token), last.next_page_token, last.total_size) == (True, "", 3)
    assert [any(task.artifacts for task in page.tasks) for page in (last, whole)] == [False, True]


async def test_cancelled_task_ends(wire: _Wire) -> None:
    """CORE-CANCEL-001."""
    task = await wire.begin()
    await wire.members.launch(GoalId(task.id))
    assert (await wire.client.cancel_task(CancelTaskRequest(id=task.id))).status.state == TaskState.TASK_STATE_CANCELED


async def test_context_contains_its_tasks(wire: _Wire) -> None:
    """CORE-MULTI-003, CORE-MULTI-005, CORE-MULTI-006, CORE-ERR-002."""
    one, other = await wire.begin(context_id="talk"), await wire.begin(context_id="talk")
    assert (one.id != other.id, one.context_id) == (True, "talk")
    for invalid in (wire.begin(task_id=one.id, context_id="another"), wire.begin(text="")):
        with pytest.raises(InvalidParamsError):
            await invalid


async def test_history_has_the_requested_length(wire: _Wire) -> None:
    """CORE-HIST-002."""
    task = await wire.begin()
    await wire.end(task.id)
    told = [await wire.client.get_task(GetTaskRequest(id=task.id, history_length=length)) for length in (0, 1)]
    assert [len(one.history) for one in told] == [0, 1]


async def test_followers_of_a_task_receive_the_same_events(wire: _Wire) -> None:
    """STREAM-SUB-001, STREAM-SUB-002, STREAM-ORDER-002, STREAM-ORDER-003, STREAM-ORDER-004."""
    task = await wire.begin()
    one, other, leaving = (aiter(wire.client.subscribe(SubscribeToTaskRequest(id=task.id))) for _ in range(3))
    assert all([(await anext(stream)).HasField("task") for stream in (one, other, leaving)])
    assert isinstance(leaving, AsyncGenerator)
    await leaving.aclose()
    await wire.end(task.id)
    told = [[event async for event in stream] for stream in (one, other)]
    assert told[0] == told[1]
    assert told[0][-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_version_is_supported_or_rejected(http: httpx.AsyncClient, members: Members) -> None:
    """VER-SERVER-001, VER-SERVER-002."""
    for version, status in (("1.0.7", 200), ("9.9", 400)):
        assert (await http.get(f"{root(http)}/a2a/{POOL}/tasks", headers={"A2A-Version": version})).status_code == status
