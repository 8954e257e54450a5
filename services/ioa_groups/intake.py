"""Intake of goals: each published goal becomes a record and is offered to agents, or becomes a dead letter with its reason."""

from __future__ import annotations

import hashlib
import mimetypes
from collections import OrderedDict
from contextlib import suppress
from functools import partial

import structlog

from ioa.errors import (
    ConflictError,
    InvalidInputError,
    IoaError,
    NotFoundError,
    NotYetError,
    OverQuotaError,
    PayloadTooLargeError,
    UnavailableError,
)
from ioa.protocol import subjects
from ioa.protocol.codec import encode_value
from ioa.protocol.goal_order import GoalOrder, InlineInput, find_goal_id, parse_goal
from ioa.protocol.goals import Artifact, GoalRecord, Reason
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.operation.audit import Deed
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.setup.tickets import digest_of_ticket
from ioa.protocol.teams.stored_teams import TeamReference
from ioa.runtime.store_share import StoreShare
from ioa.telemetry.fault_points import fault_point
from ioa_groups.group_files import FileService
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.named_teams import Teams
from ioa_groups.offering import Offering

_MAX_CACHED = 10_000
"""Maximum cached open goals."""

_MAX_WITH_TEAM_BYTES = 360_000
"""Maximum bytes of a goal with its named team: both and the cards of the members must fit into the first entry of a group."""

_log = structlog.get_logger(__name__)


class Intake:
    """Accept goals as users publish them.

    Args:
        ports: Stores and services.
        offering: Offers accepted goals to agents.
        files: Stores inputs.
        teams: Stored teams that goals name.
        store: Rejects new goals while the store is full.
        users_are_known: Whether the server lets each user publish under the user's own name only.
    """

    def __init__(
        self,
        ports: GroupServicePorts,
        offering: Offering,
        files: FileService,
        teams: Teams,
        store: StoreShare,
        *,
        users_are_known: bool,
    ) -> None:
        self._ports = ports
        self._offering = offering
        self._files = files
        self._teams = teams
        self._store = store
        self._users_are_known = users_are_known
        self._accepted: OrderedDict[str, GoalName] = OrderedDict()

    async def accept_until_ended(self, subject: str, data: bytes, identity: str) -> None:
        """Accept a goal. If users are known, keep its message until the goal has ended, which limits the open goals of a user.

        Args:
            subject: As for `accept`.
            data: As for `accept`.
            identity: As for `accept`.

        Raises:
            UnavailableError: The message must be delivered again. `NotYetError`: the goal is open.
        """
        goal = self._accepted.get(identity) or await self.accept(subject, data, identity)
        if goal is None or not self._users_are_known:
            return
        self._accepted[identity] = goal  # a later delivery skips the acceptance
        if len(self._accepted) > _MAX_CACHED:
            self._accepted.popitem(last=False)
        if await self._ports.results.ending(goal) is None:
            raise NotYetError(f"The goal {goal} is open.")
        if await self._ports.open_groups.find(goal.comm_id) is not None:
            await self._offering.close(goal)
        self._accepted.pop(identity, None)

    async def accept(self, subject: str, data: bytes, identity: str) -> GoalName | None:
        """Record a goal and offer it to agents. A repeated goal is the same goal; see `Offering.offer`.

        Args:
            subject: Subject of the message; it contains the user, and optionally an agent or a pool.
            data: Payload of the message.
            identity: Identity of the message. The id of a goal without an id is derived from it, so a message that is delivered
                repeatedly is one goal.

        Returns:
            The name of the goal, which may have ended; None if the goal was rejected.

        Raises:
            UnavailableError: The message must be delivered again. `NotYetError`: an offer has to be checked later.
                `StoreFullError`: the store is full.
        """
        reject = partial(self._ports.dead.put, subject=subject, data=data, key=identity)
        try:
            user, addressee = subjects.parse_goal_subject(subject)
        except InvalidInputError as error:
            await reject(DeadReason.UNREADABLE, error.message)
            return None
        try:
            order = parse_goal(data, addressee)
            name = GoalName(user, order.goal_id or _derive_goal_id(identity))
            if (removed := await self._ports.ended.find(name)) is not None:
                why = f"The goal {name.goal_id} has ended ({removed}) and was removed; with another id it runs again."
                await reject(DeadReason.ENDED, why)
                return None
            return await self._accept(order, name)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - an unacceptable goal is rejected, not delivered again
            if not isinstance(error, IoaError):
                _log.exception("goal_not_accepted", subject=subject)
            reason, why = _rejection(error)
            await reject(reason, why)
            if (goal_id := find_goal_id(data)) is not None:
                await self._fail(GoalName(user, goal_id), why)
            return None

    async def give_up(self, subject: str, data: bytes, identity: str, error: Exception) -> None:
        """End a goal whose message became a dead letter. A recorded goal ends at its deadline instead.

        Raises:
            UnavailableError: The record cannot be read.
        """
        with suppress(InvalidInputError):
            name = GoalName(subjects.parse_goal_subject(subject)[0], find_goal_id(data) or _derive_goal_id(identity))
            await self._fail(name, _rejection(error)[1])

    async def _accept(self, order: GoalOrder, name: GoalName) -> GoalName:
        known = await self._ports.goals.find(name.comm_id)
        if known is None:
            self._store.check()
        order, team_name = await self._with_its_team(order, known)
        goal = order.accepted(name, await self._inputs(order, name)).model_copy(update={"team_name": team_name})
        digest = digest_of_ticket(await self._ports.tickets.of(name))
        accepting = GoalRecord(goal=goal, accepted_at=self._ports.clock.now(), ticket_digest=digest)
        record = known or await self._ports.goals.create(accepting)
        if record is accepting:
            self._ports.audit.note(Deed.ACCEPTED, who=name.user, target=name.goal_id)
        if record.goal.model_copy(update={"traceparent": goal.traceparent, "user": goal.user}) != goal:
            raise ConflictError(f"The goal id {name.goal_id} is taken by another goal; that one goes on. Choose another id.")
        fault_point("groups.goal_recorded")
        await self._offering.offer(record)
        return record.goal.name

    async def _with_its_team(self, order: GoalOrder, known: GoalRecord | None) -> tuple[GoalOrder, str]:
        """Return the order with its named team, and the team's reference. A recorded goal keeps its version of the team.

        Raises:
            NotFoundError: There is no such team.
            PayloadTooLargeError: Goal and team together do not fit into a group's first entry.
        """
        if not isinstance(order.team, str):
            return order, ""
        if known is not None and known.goal.team is not None and known.goal.team_name:
            if order.names(TeamReference.parse(known.goal.team_name)):
                return order.model_copy(update={"team": known.goal.team}), known.goal.team_name
        found = await self._teams.find(TeamReference.parse(order.team))
        files = tuple(file for file in order.inputs if isinstance(file, Artifact))  # other inputs become references
        size = len(encode_value(order.model_copy(update={"team": found.team, "inputs": files}).model_dump(mode="json")))
        if size > _MAX_WITH_TEAM_BYTES:
            raise PayloadTooLargeError(
                f"The goal and the team {found.reference} have {size:,} bytes together; {_MAX_WITH_TEAM_BYTES:,} are the most.",
                hint="Move large content of the goal to a file.",
            )
        return order.model_copy(update={"team": found.team}), str(found.reference)

    async def _inputs(self, order: GoalOrder, goal: GoalName) -> tuple[Artifact, ...]:
        files = [*order.inputs]
        for position, given in enumerate(files):
            if isinstance(given, InlineInput):
                media_type = mimetypes.guess_type(given.name)[0] or "text/plain"
                files[position] = await self._files.keep(goal, position, given.name, given.text.encode(), media_type)
        return tuple(file for file in files if isinstance(file, Artifact))

    async def _fail(self, goal: GoalName, why: str) -> None:
        """Publish a result for a rejected goal, unless a recorded goal or an ended goal has its name."""
        try:
            if await self._ports.goals.find(goal.comm_id) is None and await self._ports.results.ending(goal) is None:
                await self._offering.end(goal, Reason.FAILED, f"The goal was not accepted: {why}")
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - a recorded goal ends at its deadline
            _log.exception("goal_not_ended", goal_id=goal.goal_id)


def _rejection(error: Exception) -> tuple[DeadReason, str]:
    """Return reason and text of the dead letter."""
    match error:
        case ConflictError():
            return DeadReason.CONFLICT, str(error)
        case PayloadTooLargeError() | OverQuotaError():
            return DeadReason.TOO_LARGE, str(error)
        case InvalidInputError() | NotFoundError():
            return DeadReason.UNREADABLE, str(error)
        case _:
            return DeadReason.FAILED, f"{type(error).__name__}: {error}"


def _derive_goal_id(identity: str) -> GoalId:
    return GoalId("goal-" + hashlib.sha256(identity.encode()).hexdigest()[:32])
