"""Run one replica of group setup: `python -m ioa_groups`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from ioa.adapters.nats.delivery.work_queue import Delivery, into_dead_letters
from ioa.adapters.nats.requests.request import FILE_TIMEOUT, NatsDiscovery
from ioa.adapters.nats.requests.service import ServiceEndpoint, answer, answer_agent, answer_caller, open_service
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsTickets, NatsWorkQueue
from ioa.adapters.nats.stores.nats_registry_view import NatsRegistryView
from ioa.adapters.nats.stores.team_store import NatsTeams
from ioa.adapters.nats.streams.stream_stats import follow_metrics, read_standing
from ioa.adapters.nats.wire.connection import Connection, open_connection
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.concurrency import beside
from ioa.distribution import installed_version
from ioa.group.requests import (
    AbandonGoal,
    AnswerQuestion,
    CancelGoal,
    InviteMember,
    LaunchGroup,
    ListMemberships,
    Sync,
)
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.ids import UserId
from ioa.protocol.operation.audit import Deed
from ioa.protocol.operation.status import AskStoreStanding, Prune
from ioa.protocol.setup.file_requests import MAX_ASKING_BYTES, MAX_PUT_BYTES, AskStored, GetFile, PutFile, PutUpload
from ioa.protocol.teams.stored_teams import GetTeam, ListTeams, PutTeam
from ioa.runtime.audit_log import AuditLog, audited
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.group_stores import open_group_stores
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.store_share import StoreShare
from ioa_groups.goal_orders import OrderLines, UnreadGoals
from ioa_groups.group_files import FileService
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.parts import GroupParts
from ioa_groups.read_service import read_endpoints

_MAX_REQUESTS_PER_CALLER = 4
"""Requests of one caller that are handled at once. Many of them read a log or a team file, up to 1 MB, over one connection."""
_MAX_DATA_REQUESTS, _MAX_DATA_REQUESTS_PER_CALLER = 16, 4
"""Maximum concurrent requests for files and reads of streams, of all callers and of each caller: a reply has up to 1 MB."""
_SYNC_COST, _FILE_COST = 2, 2
"""Costs of a log page and of a piece of a file in a caller's token bucket."""

_ORDERS_AT_ONCE, _LOCAL_ORDERS_AT_ONCE = 4, 16
"""Maximum goals that a replica accepts concurrently: per user, and in total if users are not known."""

_CAST_TIMEOUT, _LEADER_TIMEOUT = timedelta(seconds=3), timedelta(seconds=1)
"""Timeouts of a search for the roles of a task's team, and of a search for a leader, after which any agent may take the goal."""
SETTINGS = ControlPlaneSettings


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Set up groups and take goals in until `stop` is set."""
    async with (
        open_group_stores(settings, "groups") as (client, stores, shares),
        # Its own connection, so that no other request waits for pieces of files and pages of lists.
        open_connection(settings.nats("ioa-groups-data")) as data,
    ):
        registry = NatsRegistryView(client, settings.lease)
        ports = GroupServicePorts(
            **vars(stores),
            registry=registry,
            files=NatsFileStore(data),
            teams=NatsTeams(client),
            work=NatsWorkQueue(client),
            tickets=NatsTickets(client),
            casting=NatsDiscovery(client, _CAST_TIMEOUT),
            leading=NatsDiscovery(client, _LEADER_TIMEOUT),
            store=StoreShare(client, shares, settings.replicas),
            unread=UnreadGoals(client),
        )
        parts = GroupParts(ports, settings, shares)
        registry.listen(parts.watch.notice)
        into_dead = into_dead_letters(stores.dead)

        async def take(delivery: Delivery) -> None:
            await parts.intake.accept_until_ended(delivery.subject, delivery.data, delivery.identity)

        async def set_aside(delivery: Delivery, error: Exception) -> None:
            await into_dead(delivery, error)
            await parts.intake.give_up(delivery.subject, delivery.data, delivery.identity, error)

        at_once = _ORDERS_AT_ONCE if settings.has_own_key else _LOCAL_ORDERS_AT_ONCE
        version, limits = installed_version(), settings.limits
        few = replace(limits, max_concurrent_per_key=_MAX_REQUESTS_PER_CALLER)
        large = replace(limits, max_concurrent=_MAX_DATA_REQUESTS, max_concurrent_per_key=_MAX_DATA_REQUESTS_PER_CALLER)
        metrics = [follow_metrics(client)] if settings.metrics_port is not None else []
        orders = OrderLines(client, take, set_aside, settings.quota_goals, at_once)
        endpoints, data_endpoints = _endpoints(parts, client, stores.audit), [*read_endpoints(data), *_file_endpoints(parts.files)]
        with at_renewal(client, ports.tickets.forget):
            async with beside(registry.follow_cards(), registry.follow_leases()):
                await registry.whole()
                async with (
                    beside(
                        orders.follow(),
                        ports.store.follow(),
                        parts.watch.follow(),
                        parts.retention.follow(settings.keep),
                        parts.files.sweep(),
                        *metrics,
                    ),
                    open_service(client, "ioa-groups", "Opens and ends groups", version, endpoints, limits=few),
                    open_service(data, "ioa-groups-data", "Reads lists, logs and files", version, data_endpoints, limits=large),
                ):
                    await stop.wait()


def _endpoints(parts: GroupParts, client: Connection, audit: AuditLog) -> list[ServiceEndpoint]:
    """List the requests that group setup answers, except requests for files and streams."""
    setup, teams = parts.setup, parts.teams
    launch = answer_agent(LaunchGroup, setup.launch, lambda asked: asked.owner)
    invite = answer_agent(InviteMember, setup.invite, lambda asked: asked.by)
    abandon = answer_agent(AbandonGoal, setup.abandon, lambda asked: asked.by)
    memberships = answer_agent(ListMemberships, setup.memberships, lambda asked: asked.agent_id)
    sync = answer_agent(Sync, parts.log_pages.sync, lambda asked: asked.agent_id)
    cancel = answer_caller(CancelGoal, setup.cancel, subjects.parse_owner)
    reply = answer_caller(AnswerQuestion, setup.answer, subjects.parse_owner)
    put_team = answer_caller(PutTeam, teams.put, subjects.parse_owner)
    standing = answer(AskStoreStanding, lambda _: read_standing(client))
    large = partial(ServiceEndpoint, max_bytes=MAX_PAYLOAD_BYTES)

    def of_owner(request: str) -> tuple[str, str]:
        return subjects.any_user(request), subjects.admin("*", subjects.for_user(request, UserId("*")))

    return [
        large("launch", subjects.any_agent(subjects.LAUNCH), audited(Deed.LAUNCHED, launch, audit)),
        ServiceEndpoint("invite", subjects.any_agent(subjects.INVITE), invite),
        large("abandon", subjects.any_agent(subjects.ABANDON), audited(Deed.ABANDONED, abandon, audit)),
        ServiceEndpoint("cancel", of_owner(subjects.CANCEL), audited(Deed.CANCELLED, cancel, audit)),
        ServiceEndpoint("answer", of_owner(subjects.ANSWER), audited(Deed.ANSWERED, reply, audit)),
        ServiceEndpoint(
            "prune", subjects.admin("*", subjects.PRUNE), audited(Deed.PRUNED, answer(Prune, parts.retention.prune), audit)
        ),
        ServiceEndpoint("memberships", subjects.any_agent(subjects.MEMBERSHIPS), memberships),
        ServiceEndpoint("standing", subjects.any_status(subjects.STANDING), standing),
        large("put_team", subjects.any_user(subjects.PUT_TEAM), put_team),
        ServiceEndpoint("team", subjects.any_user(subjects.GET_TEAM), answer(GetTeam, teams.get)),
        ServiceEndpoint("teams", subjects.any_user(subjects.LIST_TEAMS), answer(ListTeams, teams.listed)),
        ServiceEndpoint("sync", subjects.any_agent(subjects.SYNC), sync, cost=_SYNC_COST),
    ]


def _file_endpoints(files: FileService) -> list[ServiceEndpoint]:
    upload = answer_caller(PutUpload, files.put_upload, subjects.parse_owner)
    put, get = answer_agent(PutFile, files.put, lambda asked: asked.agent_id), answer(GetFile, files.get)
    of_file = partial(ServiceEndpoint, cost=_FILE_COST, timeout=FILE_TIMEOUT)
    return [
        of_file("file", subjects.any_agent(subjects.GET_FILE), get, max_bytes=MAX_ASKING_BYTES),
        of_file("get", subjects.any_user(subjects.GET_UPLOAD), get, max_bytes=MAX_ASKING_BYTES),
        of_file("put", subjects.any_agent(subjects.PUT_FILE), put, max_bytes=MAX_PUT_BYTES),
        of_file("put_upload", subjects.any_user(subjects.PUT_UPLOAD), upload, max_bytes=MAX_PUT_BYTES),
        ServiceEndpoint("stored", subjects.any_status(subjects.STORED), answer(AskStored, files.stored)),
    ]


if __name__ == "__main__":
    run_process(SETTINGS, serve)
