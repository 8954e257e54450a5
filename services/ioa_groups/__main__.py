"""Run one replica of group setup: `python -m ioa_groups`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from ioa.adapters.nats.delivery.delivery import NatsDeadLetters
from ioa.adapters.nats.delivery.server_clock import open_nats_clock
from ioa.adapters.nats.delivery.work_queue import Delivery, into_dead_letters
from ioa.adapters.nats.requests.service import ServiceEndpoint, answer, answer_agent, answer_as, answer_caller, open_service
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.adapters.nats.stores.goal_records import NatsGoalRecords
from ioa.adapters.nats.stores.registry_view import NatsRegistryView
from ioa.adapters.nats.streams.stream_stats import follow_metrics, read_standing
from ioa.adapters.nats.wire.connection import Connection, open_connection
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.beside import beside
from ioa.distribution import installed_version
from ioa.group.requests import (
    AbandonGoal,
    AnswerQuestion,
    CancelGroup,
    GetGroup,
    InviteMember,
    LaunchGroup,
    ListMemberships,
    Sync,
)
from ioa.protocol import subjects
from ioa.protocol.audit import Deed
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.files import MAX_ASKING_BYTES, MAX_PUT_BYTES, AskStored, GetFile, PutFile, PutUpload
from ioa.protocol.ids import UserId
from ioa.protocol.named_teams import GetTeam, ListTeams, PutTeam
from ioa.protocol.retention import Prune
from ioa.protocol.standing import AskStoreStanding
from ioa.runtime.audit import AuditLog, audited, open_audit_log
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.group_stores import group_stores
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.recorded import RecordedDeadLetters, RecordedGoals
from ioa_groups.files import FileService
from ioa_groups.goal_orders import OrderLines
from ioa_groups.parts import GroupParts, nats_ports
from ioa_groups.read_service import read_endpoints

_MAX_REQUESTS_PER_CALLER = 4
"""Requests of one caller that are handled at once. Many of them read a log or a team file, up to 1 MB, over one connection."""
_MAX_FILE_REQUESTS = 8
"""Requests for pieces of files that are handled at once, at most one of each caller."""
_MAX_READS, _MAX_READS_PER_CALLER = 16, 4
"""Maximum concurrent read requests, of all callers and of each caller: a request reads up to 2 MB over one connection."""
_SYNC_COST, _FILE_COST = 2, 2
"""Costs of a log page and of a piece of a file in a caller's token bucket."""

_ORDERS_AT_ONCE, _LOCAL_ORDERS_AT_ONCE = 4, 16
"""Maximum goals that a replica accepts concurrently: per user, and in total if users are not known."""

SETTINGS = ControlPlaneSettings


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Set up groups and take goals in until `stop` is set."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_connection(settings.nats("ioa-groups")))
        # Own connections, so that no request waits for earlier pieces of files or reads of streams.
        carrier = await stack.enter_async_context(open_connection(settings.nats("ioa-files")))
        reader = await stack.enter_async_context(open_connection(settings.nats("ioa-reads")))
        shares = await stack.enter_async_context(open_topology(client, settings))
        clock = await open_nats_clock(client)
        audit = await stack.enter_async_context(open_audit_log(NatsAuditSink(client), clock, "groups"))
        dead = RecordedDeadLetters(NatsDeadLetters(client), audit)
        stores = group_stores(client, clock, RecordedGoals(NatsGoalRecords(client), audit), dead, audit, settings)
        registry = NatsRegistryView(client, settings.lease)
        parts = GroupParts(nats_ports(client, carrier, settings, stores, registry, dead, shares), settings, shares)
        registry.listen_for_losses(parts.watch.notice)
        ports, intake, into_dead = parts.ports, parts.intake, into_dead_letters(dead)
        metrics = [follow_metrics(client)] if settings.metrics_port is not None else []
        at_once = _ORDERS_AT_ONCE if settings.has_own_key else _LOCAL_ORDERS_AT_ONCE

        async def take(delivery: Delivery) -> None:
            await intake.accept_until_ended(delivery.subject, delivery.data, delivery.identity)

        async def set_aside(delivery: Delivery, error: Exception) -> None:
            await into_dead(delivery, error)
            await intake.give_up(delivery.subject, delivery.data, delivery.identity, error)

        endpoints = _endpoints(parts, client, audit)
        with (
            at_renewal(client, ports.ledger.forget),
            at_renewal(client, ports.tickets.forget),
        ):
            async with beside(registry.follow_cards(), registry.follow_leases(), stores.sessions.follow(), clock.follow()):
                await registry.whole()
                await stores.sessions.whole()
                async with (
                    beside(
                        OrderLines(client, take, set_aside, settings.quota_goals, at_once).follow(),
                        parts.store.follow(),
                        parts.watch.follow(),
                        parts.retention.follow(settings.keep),
                        parts.files.sweep(),
                        *metrics,
                    ),
                    open_service(
                        client,
                        "ioa-groups",
                        "Opens, ends and shows groups",
                        installed_version(),
                        endpoints,
                        limits=replace(settings.limits, max_concurrent_per_key=_MAX_REQUESTS_PER_CALLER),
                    ),
                    open_service(
                        carrier,
                        "ioa-files",
                        "Reads and writes files",
                        installed_version(),
                        _file_endpoints(parts.files),
                        limits=replace(settings.limits, max_concurrent=_MAX_FILE_REQUESTS, max_concurrent_per_key=1),
                    ),
                    open_service(
                        reader,
                        "ioa-reads",
                        "Reads goals, groups and logs for users",
                        installed_version(),
                        read_endpoints(reader),
                        limits=replace(settings.limits, max_concurrent=_MAX_READS, max_concurrent_per_key=_MAX_READS_PER_CALLER),
                    ),
                ):
                    await stop.wait()


def _endpoints(parts: GroupParts, client: Connection, audit: AuditLog) -> list[ServiceEndpoint]:
    """List what group setup answers, but for requests for files and streams."""
    setup, teams = parts.setup, parts.teams
    launch = answer_agent(LaunchGroup, setup.launch, lambda asked: asked.owner)
    invite = answer_agent(InviteMember, setup.invite, lambda asked: asked.by)
    abandon = answer_agent(AbandonGoal, setup.abandon, lambda asked: asked.by)
    parse_user, parse_owner = subjects.parse_user, subjects.parse_owner
    cancel, admin_cancel = (answer_caller(CancelGroup, setup.cancel, parse) for parse in (parse_user, parse_owner))
    reply, admin_reply = (answer_caller(AnswerQuestion, setup.answer, parse) for parse in (parse_user, parse_owner))
    prune = audited(Deed.PRUNED, answer(Prune, parts.retention.prune), audit)
    memberships = answer_agent(ListMemberships, setup.memberships, lambda asked: asked.agent_id)
    sync = answer_agent(Sync, parts.log_pages.sync, lambda asked: asked.agent_id)
    large = partial(ServiceEndpoint, max_bytes=MAX_PAYLOAD_BYTES)
    standing = answer(AskStoreStanding, lambda _: read_standing(client))
    return [
        large("launch", subjects.any_agent(subjects.LAUNCH), audited(Deed.LAUNCHED, launch, audit)),
        ServiceEndpoint("invite", subjects.any_agent(subjects.INVITE), invite),
        large("abandon", subjects.any_agent(subjects.ABANDON), audited(Deed.ABANDONED, abandon, audit)),
        ServiceEndpoint("status", subjects.any_status(subjects.GROUP_STATUS), answer(GetGroup, setup.status)),
        ServiceEndpoint("cancel", subjects.any_user(subjects.CANCEL), audited(Deed.CANCELLED, cancel, audit)),
        ServiceEndpoint("answer", subjects.any_user(subjects.ANSWER), audited(Deed.ANSWERED, reply, audit)),
        ServiceEndpoint(
            "cancel_by_admin",
            subjects.admin("*", subjects.for_user(subjects.CANCEL, UserId("*"))),
            audited(Deed.CANCELLED, admin_cancel, audit),
        ),
        ServiceEndpoint(
            "answer_by_admin",
            subjects.admin("*", subjects.for_user(subjects.ANSWER, UserId("*"))),
            audited(Deed.ANSWERED, admin_reply, audit),
        ),
        ServiceEndpoint("prune", subjects.admin("*", subjects.PRUNE), prune),
        ServiceEndpoint("memberships", subjects.any_agent(subjects.MEMBERSHIPS), memberships),
        ServiceEndpoint("standing", subjects.any_status(subjects.STANDING), standing),
        large("put_team", subjects.any_user(subjects.PUT_TEAM), answer_caller(PutTeam, teams.put, parse_user)),
        ServiceEndpoint("team", subjects.any_user(subjects.GET_TEAM), answer(GetTeam, teams.get)),
        ServiceEndpoint("teams", subjects.any_user(subjects.LIST_TEAMS), answer(ListTeams, teams.listed)),
        ServiceEndpoint("sync", subjects.any_agent(subjects.SYNC), sync, cost=_SYNC_COST),
    ]


def _file_endpoints(files: FileService) -> list[ServiceEndpoint]:
    of_file = partial(ServiceEndpoint, cost=_FILE_COST)
    upload = answer_as(PutUpload, files.put_upload, lambda subject: (subjects.parse_user(subject),), lambda asked: asked.user)
    getting, putting = partial(of_file, max_bytes=MAX_ASKING_BYTES), partial(of_file, max_bytes=MAX_PUT_BYTES)
    return [
        getting("file", subjects.any_agent(subjects.GET_FILE), answer(GetFile, files.get)),
        putting("put", subjects.any_agent(subjects.PUT_FILE), answer_agent(PutFile, files.put, lambda asked: asked.agent_id)),
        getting("get", subjects.any_user(subjects.GET_UPLOAD), answer(GetFile, files.get)),
        putting("put_upload", subjects.any_user(subjects.PUT_UPLOAD), upload),
        ServiceEndpoint("stored", subjects.any_status(subjects.STORED), answer(AskStored, files.stored)),
    ]


if __name__ == "__main__":
    run_process(SETTINGS, serve)
