"""The service that answers read requests: goals, groups, logs, dead letters and the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.aio.client import Client

from ioa.adapters.nats.requests.endpoints import Handler, ServiceEndpoint, answer
from ioa.adapters.nats.stores.audit_stream import AuditReader
from ioa.adapters.nats.stores.dead_letters import DeadLetterReader
from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.goal_listing import GoalListing
from ioa.adapters.nats.streams.log_reader import LogReader
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_ANSWER_BYTES, encode, receive
from ioa.protocol.model import Model
from ioa.protocol.reads import GetGoal, GoalReader, ListGoals, ListGroups, ReadAudit, ReadDeadLetters, ReadLog

Asked = TypeVar("Asked", bound=Model)


def read_endpoints(client: Client) -> list[ServiceEndpoint]:
    """Return the endpoints of read requests, as users and as readers of all goals, and of the audit log."""
    owners = GroupOwners(client)
    listing, logs, letters = GoalListing(client, owners), LogReader(client, owners), DeadLetterReader(client, owners)
    handlers = {
        subjects.GOALS_LIST: _answer_reader(ListGoals, listing.goals),
        subjects.GOALS_GET: _answer_reader(GetGoal, listing.goal),
        subjects.GROUPS_LIST: _answer_reader(ListGroups, listing.groups),
        subjects.LOG_PAGE: _answer_reader(ReadLog, logs.page),
        subjects.DEAD_PAGE: _answer_reader(ReadDeadLetters, letters.page),
    }
    return [
        *(_endpoint("", subjects.any_user(request), handler) for request, handler in handlers.items()),
        *(_endpoint("all_", subjects.reader("*", request), handler) for request, handler in handlers.items()),
        _endpoint("", subjects.auditor("*", subjects.AUDIT_PAGE), answer(ReadAudit, AuditReader(client).page)),
    ]


def _endpoint(prefix: str, subject: str, handler: Handler) -> ServiceEndpoint:
    name = prefix + subjects.kind_of(subject).replace(".", "_")
    return ServiceEndpoint(name, subject, handler, exempt_callers=(subjects.GATEWAY,))


def _answer_reader(kind: type[Asked], method: Callable[[GoalReader, Asked], Awaitable[Model]]) -> Handler:
    """Make a handler that passes the caller named by the subject to the method."""

    async def handle(subject: str, data: bytes) -> bytes:
        reader = GoalReader(*subjects.parse_reader(subject))
        return encode(await method(reader, receive(kind, data)), max_payload_bytes=MAX_ANSWER_BYTES)

    return handle
