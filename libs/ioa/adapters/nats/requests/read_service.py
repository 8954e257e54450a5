"""The service that answers read requests: goals, groups, logs, dead letters and the audit log."""

from __future__ import annotations

from functools import partial

from nats.aio.client import Client

from ioa.adapters.nats.requests.endpoints import Handler, ServiceEndpoint, answer, answer_caller
from ioa.adapters.nats.stores.audit_stream import read_audit_page
from ioa.adapters.nats.stores.dead_letters import DeadLetterReader
from ioa.adapters.nats.streams.goal_listing import GoalListing
from ioa.adapters.nats.streams.log_reader import GroupOwners, LogReader
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_ANSWER_BYTES
from ioa.protocol.reads import GetGoal, GoalReader, ListGoals, ListGroups, ReadAudit, ReadDeadLetters, ReadLog


def read_endpoints(client: Client) -> list[ServiceEndpoint]:
    """Return the endpoints of read requests, as users and as readers of all goals, and of the audit log."""
    owners = GroupOwners(client)
    listing, logs, letters = GoalListing(client, owners), LogReader(client, owners), DeadLetterReader(client, owners)
    answer_reader = partial(answer_caller, parse_caller=_parse_reader, max_reply_bytes=MAX_ANSWER_BYTES)
    handlers = {
        subjects.GOALS_LIST: answer_reader(ListGoals, listing.goals),
        subjects.GOALS_GET: answer_reader(GetGoal, listing.goal),
        subjects.GROUPS_LIST: answer_reader(ListGroups, listing.groups),
        subjects.LOG_PAGE: answer_reader(ReadLog, logs.page),
        subjects.DEAD_PAGE: answer_reader(ReadDeadLetters, letters.page),
    }
    return [
        *(_endpoint("", subjects.any_user(request), handler) for request, handler in handlers.items()),
        *(_endpoint("all_", subjects.reader("*", request), handler) for request, handler in handlers.items()),
        _endpoint("", subjects.auditor("*", subjects.AUDIT_PAGE), answer(ReadAudit, partial(read_audit_page, client))),
    ]


def _endpoint(prefix: str, subject: str, handler: Handler) -> ServiceEndpoint:
    name = prefix + subjects.kind_of(subject).replace(".", "_")
    return ServiceEndpoint(name, subject, handler, exempt_callers=(subjects.GATEWAY,))


def _parse_reader(subject: str) -> GoalReader:
    return GoalReader(*subjects.parse_reader(subject))
