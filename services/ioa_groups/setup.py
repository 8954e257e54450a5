"""Opening, ending and showing groups. A group's record is its log: nothing else is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import timedelta

from ioa.errors import ConflictError, ForbiddenError, InvalidInputError, NoAgentError, NotFoundError, NotYetError
from ioa.group.events import CancelRequested, GroupLaunched, MemberJoined, QuestionAnswered, SubgroupOpened
from ioa.group.policy.casting import members_in_order
from ioa.group.policy.visibility import charter_for, seen_by
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    AnswerQuestion,
    CancelGoal,
    GroupSnapshot,
    InviteMember,
    LaunchGroup,
    ListMemberships,
    OpenMemberships,
    Rejected,
    SayReply,
    fitting,
    no_group,
)
from ioa.group.state import GroupState, OpenTask
from ioa.group.tasks import own_task
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard, abridged, why_not_drafted
from ioa.protocol.goals import Goal, GoalRecord, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, GoalName, PoolId, UserId, comm_id_of_task
from ioa.protocol.policy import Casting, Policy, people_of
from ioa.protocol.registry import Acknowledged
from ioa.protocol.setup.charter import MAX_MEMBERS, Charter, Limits, ParentTask
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.protocol.setup.tickets import is_ticket
from ioa.protocol.teams.checker import MAX_STATE_BYTES, state_bytes
from ioa.protocol.teams.stored_teams import TeamReference
from ioa.protocol.teams.team_file import TeamSpec, is_seat
from ioa.protocol.texts import shortened
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.ledger import MAX_REASON_BYTES
from ioa.telemetry.fault_points import fault_point
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.launching import CARDS_BYTES, check_asked, launch_event
from ioa_groups.named_teams import Teams
from ioa_groups.role_casting import card_of_seat, cast_roles, cast_team_of_task

SETUP_NAME = AgentId("group-setup")

_EXAMPLES_SHOWN = 3
_MAX_SILENCE = timedelta(minutes=1)
"""Maximum silence of an agent that counts as restarting."""


class GroupSetup:
    """Requests `groups.*`."""

    def __init__(self, ports: GroupServicePorts, teams: Teams, settings: ControlPlaneSettings) -> None:
        self._ports = ports
        self._teams = teams
        self._settings = settings

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group for a goal or a task. A repeated request of the same owner returns the open group.

        Raises:
            NotFoundError: Goal, parent group, task or named team does not exist, or the owner has no ticket of the goal.
            NoAgentError: A member is not registered, is offline, or does not accept the owner's pool; or no agent fills a role.
            UnavailableError: A member restarts, or discovery does not answer; the request can be repeated.
            SupersededError: Another process has taken the owner's id over.
            ConflictError: Another agent leads the goal, or it has ended, however long ago.
            ForbiddenError: Goal or task is another's, or the team that the task names is of another user; teams may not nest
                deeper, or too little of the budget is left.
            InvalidInputError: The team is too large, or the parent works for another goal.
            PayloadTooLargeError: Goal, plan and cards together do not fit into the group's first entry.
        """
        await self._ports.sessions.check(request.owner, request.session)
        parent = request.parent
        above = None if parent is None else await self._parent_state(request.owner, parent)
        comm_id = comm_id_of_task(parent.comm_id, parent.task_id) if parent else request.name.comm_id
        record = None if parent else await self._ports.goals.find(comm_id)
        if record is not None:
            _check_ticket(record, request.ticket)
        if (head := await self._ports.ledger.head(comm_id)) is not None:
            # A repeated launch is answered even when a member has gone offline since.
            return await self._launched_before(head, request)
        if parent is None and (ending := await self._ports.results.ending(request.name)) is not None:
            raise ConflictError(f"No group can be opened for the goal {request.goal_id}: it has ended ({ending}).")
        if record is not None:
            self._check_addressee(record.goal, request.owner)
        team, found = await self._team_and_found(request, record, above)
        cast = () if team is None else cast_roles(team, found, request.owner, self._ports.registry)
        people = frozenset[AgentId]() if team is None else people_of(team.policy, cast)
        members = (request.owner, *request.members, *(agent for casting in cast for agent in casting.members))
        if team is not None:
            members, cast = members_in_order(team.policy, members, cast)
        cards = self._team_cards(members, people)
        origin = await self._origin_of_task(request, parent, above) if parent and above else self._origin_of_goal(request, record)
        launched = launch_event(request, team, cast, cards, origin, self._ports.clock.now())
        if parent is not None:
            limits = await self._lend(request, parent, comm_id)
            launched = launched.model_copy(update={"charter": launched.charter.model_copy(update={"limits": limits})})
        charter = launched.charter
        group = OpenGroup(goal_id=charter.goal_id, deadline=charter.limits.deadline)
        await self._ports.open_groups.add(charter.user, charter.comm_id, group)
        try:
            recorded = await self._ports.ledger.record(charter.comm_id, launched)
        except IllegalEventError:  # another request launched or ended the group meanwhile
            head = await self._existing(comm_id)
            if head.entry.state.phase.is_terminal:
                await self._ports.ledger.settle(head.entry.state)  # the open index may contain it again
            return await self._launched_before(head, request)
        # If this process stops here, the repeated launch stores them, or the router's next check of the group's timer.
        await self._ports.memberships.add([card.agent_id for card in cards], charter.comm_id)
        return _snapshot_for(charter.owner, recorded.seq, recorded.state, charter)

    async def invite(self, request: InviteMember) -> SayReply:
        """Add an agent to a group, by request of a member that has the floor.

        Raises:
            NotFoundError: There is no such group, or the caller is no member.
            NoAgentError: The agent is not registered, is offline, or does not accept the caller's pool.
            UnavailableError: The agent restarts; the request can be repeated.
            SupersededError: Another process has taken the caller's id over.
        """
        await self._ports.sessions.check(request.by, request.session)
        comm_id, agent_id = request.comm_id, request.agent_id
        head = await self._existing(comm_id)
        charter = await self._charter(comm_id)
        if charter is None or request.by not in head.entry.state.hearing:
            raise no_group(comm_id)
        is_open = not head.entry.state.phase.is_terminal
        if is_open and agent_id in head.entry.state.living() and agent_id not in [card.agent_id for card in charter.team_members]:
            await self._ports.memberships.add([agent_id], comm_id)  # the process that appended the entry may have stopped before
            return SayReply(answer=Accepted(seq=head.seq))
        card = self._team_cards((request.by, agent_id), frozenset())[-1]  # a caller that invites itself occurs once
        speaks = {one.agent_id: one.speaks for one in charter.team_members}
        if charter.policy is not None and _is_full(charter.policy, head.entry.state, request.role):
            why = f"With another {request.role} the state might grow beyond {MAX_STATE_BYTES:,} bytes."
            return SayReply(answer=Rejected(code=RejectionCode.TOO_MANY_MEMBERS, message=why))
        joined = MemberJoined(
            at=self._ports.clock.now(),
            card=abridged(card, CARDS_BYTES // MAX_MEMBERS),
            by=request.by,
            turn=request.turn,
            role=request.role,
            why=request.why,
            ruled=charter.policy is None and card.speaks == "rules" and speaks[charter.owner] == "model",
        )
        try:
            recorded = await self._ports.ledger.record(comm_id, joined)
        except IllegalEventError as refused:
            return SayReply(answer=Rejected(code=refused.code, message=refused.message))
        await self._ports.memberships.add([agent_id], comm_id)
        return SayReply(answer=Accepted(seq=recorded.seq))

    async def abandon(self, request: AbandonGoal) -> Acknowledged:
        """End a goal without a group, with a typed reason. A goal that has ended keeps its end.

        Raises:
            NotFoundError: There is no such goal, or the caller has no ticket of it.
            ForbiddenError: The goal addresses another pool.
            ConflictError: The group of the goal is open.
            SupersededError: Another process has taken the caller's id over.
        """
        await self._ports.sessions.check(request.by, request.session)
        record = await self._ports.goals.find(request.name.comm_id)
        if record is not None:
            _check_ticket(record, request.ticket)
        if await self._ports.results.ending(request.name) is not None:
            return Acknowledged()
        if record is None:
            raise _no_goal(request.goal_id)
        self._check_addressee(record.goal, request.by)
        decision = {"usage": request.usage, "calls": request.calls, "decided_by": request.decided_by}
        await self._once(self._ports.ledger.abandon(request.name, request.by, request.reason, request.content, **decision))
        return Acknowledged()

    async def cancel(self, user: UserId, request: CancelGoal) -> Acknowledged:
        """Cancel a goal of a user, with its groups. A goal that has ended keeps its end.

        Raises:
            NotFoundError: There is no such goal of this user.
        """
        name, why = GoalName(user, request.goal_id), shortened(request.why, MAX_REASON_BYTES) or "Cancelled on request."
        if await self._ports.results.ending(name) is not None:
            return Acknowledged()
        if await self._ports.ledger.head(name.comm_id) is None:
            if not await self._is_published(name):
                raise NotFoundError(f"There is no goal {name}.")
            with suppress(ConflictError):  # launched at this moment, and cancelled as any group
                await self._once(self._ports.ledger.abandon(name, SETUP_NAME, Reason.CANCELLED, why))
                return Acknowledged()
        await self._once(self._ports.ledger.record(name.comm_id, CancelRequested(at=self._ports.clock.now(), why=why)))
        return Acknowledged()

    async def answer(self, user: UserId, request: AnswerQuestion) -> Acknowledged:
        """Answer a question of a group or a task to the user of its goal. The first answer counts.

        Raises:
            NotFoundError: There is no such group.
            ForbiddenError: The goal belongs to another user.
            InvalidInputError: The answer is none of the options.
            ConflictError: No such question waits for an answer.
        """
        state = (await self._existing(request.comm_id)).entry.state
        if (owner := state.user) != user:
            raise ForbiddenError(f"The group {request.comm_id} works for a goal of {owner}: only this user or an admin may answer.")
        answered = QuestionAnswered(
            at=self._ports.clock.now(),
            turn=request.turn,
            task_id=request.task_id,
            number=request.number,
            answer=request.answer,
            by=user,
            key=request.key,
        )
        try:
            await self._ports.ledger.record(request.comm_id, answered)
        except IllegalEventError as refusal:
            if refusal.code is RejectionCode.BAD_DECISION:
                raise InvalidInputError(refusal.message) from None
            raise ConflictError(refusal.message) from None
        return Acknowledged()

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Return the groups of an agent, without ended groups whose end the agent has read."""
        return await self._ports.memberships.page(request.agent_id, after=request.after, limit=request.limit)

    def _origin_of_goal(self, request: LaunchGroup, record: GoalRecord | None) -> Mapping[str, object]:
        """Return the fields of a charter that follow from a goal."""
        if record is None:
            raise _no_goal(request.goal_id)
        of_goal = {name: getattr(record.goal, name) for name in ("comm_id", "user", "goal", "inputs", "traceparent", "labels")}
        own = {"deadline": record.deadline, "conclusion_timeout": self._settings.floor_timeout}
        limits = {**dict(self._settings), **dict(record.goal), **own}  # limits have the same names there
        return {**of_goal, "team_up_depth": 0, "limits": Limits.model_validate(limits)}

    def _check_addressee(self, goal: Goal, agent_id: AgentId) -> None:
        """Reject an agent of a pool that the goal does not address."""
        pool = self._find_pool(agent_id)
        if goal.agent not in (None, agent_id, pool) and (pool is None or self._find_pool(goal.agent) != pool):
            raise ForbiddenError(f"The goal {goal.goal_id} is {goal.agent}'s to lead, and not {agent_id}'s.")

    def _find_pool(self, agent_id: AgentId) -> PoolId | None:
        known = self._ports.registry.card(agent_id)
        return None if known is None else known.card.pool

    async def _origin_of_task(self, request: LaunchGroup, parent: ParentTask, state: GroupState) -> Mapping[str, object]:
        """Return the fields of a charter that follow from a task, with the limits of the parent group."""
        charter = await self._charter(parent.comm_id)
        if charter is None or charter.goal_id != request.goal_id:
            raise InvalidInputError(f"Group {parent.comm_id} does not work for the goal {request.goal_id}.")
        return {
            "comm_id": comm_id_of_task(parent.comm_id, parent.task_id),
            "user": charter.user,
            "goal": request.goal,
            "inputs": tuple({file.object_name: file for file in (*charter.inputs, *request.inputs)}.values()),
            "team_up_depth": state.depth + 1,
            "limits": state.limits,
            "parent": parent,
            "brief": request.brief,
            "traceparent": charter.traceparent,
            "labels": charter.labels,
        }

    async def _lend(self, request: LaunchGroup, parent: ParentTask, comm_id: CommId) -> Limits:
        """Append the nested group to the parent's log, and return its limits: the parent decides whether there may be one."""
        opened = SubgroupOpened(at=self._ports.clock.now(), task_id=parent.task_id, by=request.owner, subgroup=comm_id)
        try:
            state = (await self._ports.ledger.record(parent.comm_id, opened)).state
        except IllegalEventError as refusal:
            state = (await self._existing(parent.comm_id)).entry.state
            task = state.task(parent.task_id)
            if not (isinstance(task, OpenTask) and task.subgroup == comm_id and task.assignee == request.owner):
                raise ForbiddenError(refusal.message) from None
        fault_point("groups.subgroup_recorded")
        loan = state.loan(comm_id)
        if loan is None:
            raise ForbiddenError(f"The nested team of task {parent.task_id} has ended.")
        lent = {"max_turns": loan.turns, "max_tokens": loan.tokens, "max_cost_micros": loan.cost_micros, "deadline": loan.deadline}
        return state.limits.model_copy(update=lent)

    async def _team_and_found(
        self, request: LaunchGroup, record: GoalRecord | None, above: GroupState | None
    ) -> tuple[TeamSpec | None, Sequence[Casting]]:
        """Return the team of a goal or a task, and its casting by discovery."""
        team, leader = None if record is None else record.goal.team, self._ports.registry.card(request.owner)
        named = None if request.parent is None or above is None else await self._team_of_task(request.owner, request.parent, above)
        check_asked(request, named or team, None if leader is None else leader.card)
        if named is None or request.parent is None:
            return team, request.cast
        return named, await cast_team_of_task(named, request.parent, request.owner, self._ports.casting)

    async def _team_of_task(self, assignee: AgentId, parent: ParentTask, state: GroupState) -> TeamSpec | None:
        """Read the stored team that a task names for its assignee to serve it with; None if it names none.

        Raises:
            NotFoundError: The user of the goal has no team of this name. The error is the same for a name of another user, because
                agents cannot list teams.
        """
        task = state.task_told_to(assignee, parent.task_id)
        if not isinstance(task, OpenTask) or not task.team:
            return None
        named, user, found = TeamReference.parse(task.team), state.user, None
        with suppress(NotFoundError):
            found = await self._teams.find(named)
        if found is None or found.user != user:
            raise NotFoundError(f"No team of {user} is called {named}.", hint="Tasks name teams of the user whose goal it is.")
        return found.team

    def _team_cards(self, agent_ids: tuple[AgentId, ...], people: Set[AgentId]) -> tuple[AgentCard, ...]:
        """Return the cards of a team, its owner first; people need not be registered, nor be there."""
        cards, known = [], self._ports.registry.card(agent_ids[0])
        leader = None if known is None else known.card
        for agent_id in dict.fromkeys(agent_ids):
            record = self._ports.registry.card(agent_id)
            if record is None and agent_id in people:
                cards.append(card_of_seat(agent_id))
                continue
            if record is None:
                raise NoAgentError(f"{agent_id} cannot join: it is not registered.")
            if agent_id != agent_ids[0] and (why := why_not_drafted(leader, record.card)):
                raise NoAgentError(f"{agent_id} cannot join: {why}.")
            if agent_id not in people:
                self._check_online(agent_id)
            patience = self._limited_patience(record.card, is_agent=agent_id not in people and not is_seat(agent_id))
            cards.append(record.card.model_copy(update={"examples": record.card.examples[:_EXAMPLES_SHOWN], "patience": patience}))
        return tuple(abridged(card, CARDS_BYTES // len(cards)) for card in cards)

    def _check_online(self, agent_id: AgentId) -> None:
        """Raise `NoAgentError` if an agent is offline, or `NotYetError` if it may be restarting."""
        registry = self._ports.registry
        if registry.is_online(agent_id):
            return
        silence = registry.silence(agent_id)
        if not registry.is_lost(agent_id) or (silence is not None and silence <= _MAX_SILENCE):
            raise NotYetError(f"{agent_id} did not renew its lease in time; it may be restarting.", hint="Retry.")
        raise NoAgentError(f"{agent_id} cannot join: it is not online.")

    def _limited_patience(self, card: AgentCard, *, is_agent: bool) -> timedelta | None:
        """Return the patience of a member within the limits of agents; a person has the patience of its card.

        It is at least the floor timeout or the task lease, because each timeout appends an entry.
        """
        if card.patience is None:
            return None
        patience = max(card.patience, min(self._settings.floor_timeout, self._settings.task_lease))
        return min(patience, self._settings.patience) if is_agent else patience

    async def _parent_state(self, owner: AgentId, parent: ParentTask) -> GroupState:
        """Return the state of the parent group for the assignee of the task; other agents must not learn of the task."""
        state = (await self._existing(parent.comm_id)).entry.state
        if owner not in state.hearing:
            raise no_group(parent.comm_id)
        task = state.task_told_to(owner, parent.task_id)
        if task is None or task.assignee != owner:  # a closed task keeps its nested group
            try:
                own_task(state, parent.task_id, owner)
            except IllegalEventError as refusal:
                raise ForbiddenError(refusal.message) from None
        return state

    async def _launched_before(self, head: StoredEntry, request: LaunchGroup) -> GroupSnapshot:
        owner, state = request.owner, head.entry.state
        charter = await self._charter(state.comm_id)
        if charter is None:
            raise ConflictError(f"The group {state.comm_id} cannot be launched: it has ended ({state.phase}).")
        if charter.owner != owner:
            raise ConflictError(f"The group {state.comm_id} is not {owner}'s to launch: {charter.owner} has launched it.")
        if not state.phase.is_terminal:  # the process that appended the launch may have stopped before it stored these
            await self._ports.memberships.add(state.hearing, state.comm_id)
        return fitting(_snapshot_for(owner, head.seq, state, charter))

    async def _is_published(self, goal: GoalName) -> bool:
        """Whether a goal is recorded, or waits for intake, which does not offer an ended goal."""
        for _ in range(2):  # intake may record the goal between the two reads
            if await self._ports.goals.find(goal.comm_id) is not None or await self._ports.unread.contains(goal):
                return True
        return False

    async def _once(self, recording: Awaitable[object]) -> None:
        """Append an event to a group, unless it has ended.

        Raises:
            ConflictError: The event is not legal.
        """
        try:
            await recording
        except IllegalEventError as refusal:
            if refusal.code is not RejectionCode.GROUP_ENDED:
                raise ConflictError(refusal.message) from None

    async def _existing(self, comm_id: CommId) -> StoredEntry:
        head = await self._ports.ledger.head(comm_id)
        if head is None:
            raise no_group(comm_id)
        return head

    async def _charter(self, comm_id: CommId) -> Charter | None:
        first = await self._ports.log.read(comm_id, after=0, limit=1)
        launch = first[0].entry.event if first else None
        return launch.charter if isinstance(launch, GroupLaunched) else None


def _snapshot_for(owner: AgentId, seq: int, state: GroupState, charter: Charter) -> GroupSnapshot:
    """Return the snapshot of a group as the policy shows it to the owner."""
    if charter.policy is None:
        return GroupSnapshot(seq=seq, state=state, charter=charter)
    return GroupSnapshot(seq=seq, state=seen_by(charter.policy, state, owner), charter=charter_for(charter, owner))


def _no_goal(goal_id: GoalId) -> NotFoundError:
    """Return the error for a goal that does not exist, or whose ticket the caller lacks."""
    hint = "Whoever is given a goal shows the ticket that came with it."
    return NotFoundError(f"There is no goal {goal_id}.", hint=hint)


def _check_ticket(record: GoalRecord, ticket: str | None) -> None:
    """Raise the error of a goal that does not exist if the ticket is missing or wrong."""
    if not is_ticket(ticket, record.ticket_digest):
        raise _no_goal(record.goal.goal_id)


def _is_full(policy: Policy, state: GroupState, role: str | None) -> bool:
    """Whether one more holder of a role could exceed the maximum size of the state."""
    held = {one.name: sum(number in member.roles for member in state.members) for number, one in enumerate(policy.roles)}
    return role in held and state_bytes(policy, held | {role: held[role] + 1}) > MAX_STATE_BYTES
