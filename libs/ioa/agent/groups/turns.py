"""Turns of one member: decide a message, send it, and pass the floor on if no message is accepted.

The brain is asked again with the reasons of each rejection; after the third one the floor passes on, with the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ioa.agent.brain_port import Brain, Decides
from ioa.agent.function_brain import FunctionBrain
from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.metrics import count_decision, timed_decision
from ioa.agent.rules import RuleBrain
from ioa.agent.send import seconds_to_wait, until_answered
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.tasks.task_runner import TaskRunner
from ioa.agent.team_formation import search_for_others
from ioa.agent.turn_view import TurnView
from ioa.beside import beside
from ioa.errors import ConflictError, InvalidInputError, IoaError, SupersededError
from ioa.group.budget import is_exhausted
from ioa.group.rejection import MAX_REFUSALS
from ioa.group.requests import Accepted, InviteMember
from ioa.group.state import Asking, Concluding
from ioa.ports.brain import AsksModel, Invite
from ioa.ports.meter import Meter
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    PassCause,
    Payload,
    Thinking,
)
from ioa.protocol.model_calls import rejected
from ioa.protocol.texts import shortened
from ioa.protocol.trace import span_id_of_group
from ioa.protocol.usage import NO_OVERHEAD, overhead_of_refused
from ioa.telemetry import live_spans
from ioa.telemetry.fault_points import fault_point

if TYPE_CHECKING:
    from ioa.agent.groups.group_session import GroupSession

MAX_INVITES = 3
"""Maximum number of invitations within one turn."""

_ASKED_AFTER, _ASKED_AGAIN_AFTER = 0.55, 0.1
"""Shares of its patience after which a deciding member requests more time, and repeats a request that failed."""

_MAX_WHY_BYTES = 2_000
"""Maximum bytes of the reasons in a pass."""

_DECISIONS = {Asking: "decide", Concluding: "conclude"}
"""Names of decisions in the metrics, by the stage of the group."""

_log = structlog.get_logger(__name__)


class TurnTaker:
    """Takes one member's turns in one group, each once.

    Args:
        runner: The agent's brain, functions and tasks.
        history: The group as the member knows it.
        files: The group's files.
        follower: Keeps the history up to date.
    """

    def __init__(self, runner: TaskRunner, history: GroupHistory, files: GroupFiles, follower: GroupSession) -> None:
        self._me = runner.card.agent_id
        self._runner, self._sender = runner, runner.sender
        self._history = history
        self._files = files
        self._follower = follower
        self._report = partial(runner.report, history)
        self._meter = Meter()
        self._meter.is_exhausted = self._is_budget_exhausted

    async def take(self, turn: int) -> Accepted | None:
        """Send a message in a turn; None if none was accepted."""
        refusals: list[str] = []
        invited: list[Invite] = []
        self._report("turn_started", turn=turn)
        self._meter.hear = self._runner.model_listener(self._history, turn=turn)
        while len(refusals) < MAX_REFUSALS and self._has_floor(turn):
            message: Message | None = None
            code = ""
            try:
                message = await self._decided_message(tuple(refusals), turn, invited)
                if message is None:
                    return None
                answer = await self._sender.send(message)
            except SupersededError:
                raise
            except IoaError as error:
                _log.warning("nothing_said", turn=turn, why=str(error))
                refusals.append(str(error))
            except Exception as error:  # noqa: BLE001 - a brain may raise anything; it is asked again
                _log.exception("thought_failed", turn=turn)
                refusals.append(f"{type(error).__name__}: {error}")
            else:
                if isinstance(answer, Accepted):
                    return self._accepted(message, answer)
                _log.info("refused", code=answer.code, why=answer.message)
                refusals.append(answer.message)
                code = str(answer.code)
            self._report("message_rejected", turn=turn, why=refusals[-1], code=code)
            if message is not None:
                self._count_rejected(message, code)
            await self._follower.look()
        return await self._pass_on(turn, refusals) if len(refusals) == MAX_REFUSALS else None

    async def _decided_message(self, refusals: tuple[str, ...], turn: int, invited: list[Invite]) -> Message | None:
        """Decide a message; `invited` collects the invitations of this turn, which come before it.

        Returns:
            None if an invitation was a watcher's answer, which ends the turn.

        Raises:
            IoaError: No more agent can be invited; the brain receives the reason.
        """
        while isinstance(said := await self._decide(refusals), Invite):
            if len(invited) == MAX_INVITES:
                raise InvalidInputError(f"This turn has {MAX_INVITES} invitations, which is the maximum: send a message.")
            await self._invite(said, turn)
            invited.append(said)
            if not self._has_floor(turn):
                return None
        if thought := self._meter.thought:
            self._history.thoughts[turn] = thought
            await until_answered(self._runner.ports.store.put_thought, self._history.comm_id, turn, thought)
        by = self._meter.decided_by
        return self._sender.message(self._history, said, turn, self._meter.take(), by=by)

    def _accepted(self, message: Message, answer: Accepted) -> Accepted:
        """Report an accepted message, and return the answer."""
        said = message.payload
        _log.debug("said", kind=said.type, turn=message.header.turn, seq=answer.seq, content=said)
        content = next((text for name in ("choice", "text", "content") if (text := getattr(said, name, None)) is not None), "")
        about = {"turn": message.header.turn, "kind": said.type, "decided_by": message.header.decided_by}
        self._report("message_accepted", content=content, **about)
        return answer

    def _count_rejected(self, message: Message, code: str) -> None:
        """Count the cost of a rejected message, which the next message reports."""
        self._meter.note(*rejected(message.header.calls, code))
        if message.header.usage is not None:
            self._meter.add(message.header.usage)
            self._meter.set_apart(overhead_of_refused(message.header.usage, message.header.overhead or NO_OVERHEAD))

    async def _invite(self, invite: Invite, turn: int) -> None:
        """Invite an agent, and wait until this member knows it.

        Raises:
            InvalidInputError: No agent can join, or the named one is a member.
            ConflictError: Another member has the floor now.
            IoaError: Discovery or group setup rejects the request.
        """
        state, comm_id, network = self._history.state, self._history.comm_id, self._sender.network
        if state is None or not self._has_floor(turn):
            raise ConflictError(f"No agent can be invited in turn {turn} now: another member has the floor.")
        agent_id = invite.agent
        if agent_id is not None and state.is_member(agent_id):
            raise InvalidInputError(f"{agent_id} is in the group, or was removed from it: send a message, or invite another agent.")
        if agent_id is None:
            search = search_for_others([invite.need], me=self._me, purpose=comm_id, budget=None)
            [hits] = (await until_answered(network.search, search)).by_need
            agent_id = next((hit.card.agent_id for hit in hits.hits if not state.is_member(hit.card.agent_id)), None)
            if agent_id is None:
                raise InvalidInputError(f"No other agent was found for: {invite.need}.")
        about = {"comm_id": comm_id, "by": self._me, "turn": turn, "session": self._sender.session}
        request = validate(InviteMember, {**about, "agent_id": agent_id, "role": invite.role, "why": invite.why})
        answer = await until_answered(network.invite, request)
        if not isinstance(answer, Accepted):
            raise InvalidInputError(answer.message)
        self._follower.catch_up(answer.seq)
        await self._follower.look()

    async def _pass_on(self, turn: int, refusals: Sequence[str]) -> Accepted | None:
        """Pass the floor with the reasons of the rejections; None if another member has it, or it cannot be passed."""
        view = self._runner.view(self._history, self._meter, self._files)
        if not self._has_floor(turn) or "PASS" not in view.legal:
            return None
        why = "\n".join(dict.fromkeys(refusals))
        passed = Pass(cause=PassCause.NO_USABLE_ANSWER, content=shortened(why, _MAX_WHY_BYTES))
        message = self._sender.message(self._history, passed, turn, self._meter.take())
        answer = await self._sender.send(message)
        count_decision(_DECISIONS.get(type(view.state.stage), "speak"), None, str(passed.cause))
        return self._accepted(message, answer) if isinstance(answer, Accepted) else None

    def _is_budget_exhausted(self) -> bool:
        state = self._history.state
        return state is not None and is_exhausted(state, self._meter.total)

    def _has_floor(self, turn: int) -> bool:
        state = self._history.state
        return state is not None and self._me in state.floor and state.turn == turn

    async def _decide(self, refusals: tuple[str, ...]) -> Payload | Invite:
        """Decide a message; requests on the way belong to the group's span."""
        assert self._history.charter is not None
        fault_point("agent.thinking")
        self._meter.decided_by, self._meter.thought = None, ""
        with live_spans.under(self._history.charter.traceparent, span_id_of_group(self._history.comm_id)):
            view = self._runner.view(self._history, self._meter, self._files, refusals)
            view = await self._runner.functions.prepare(view, self._files)
            said: Payload | Invite | None = self._said_by_rule(view)
            if said is None:
                decision = _DECISIONS.get(type(view.state.stage), "speak")
                with timed_decision(decision):
                    said = await self._keeping_floor(view, self._ask(decision, view))
                count_decision(decision, self._meter.decided_by, str(said.cause) if isinstance(said, Pass) else "")
        if isinstance(said, Conclusion):
            return await self._files.fit(said, view.turn)
        if isinstance(said, ConcludeGroupDiscussion) and said.conclusion is not None:
            return said.model_copy(update={"conclusion": await self._files.fit(said.conclusion, view.turn)})
        return said

    def _said_by_rule(self, view: TurnView) -> Payload | None:
        """Return a message that a policy prescribes, or the default of a decision that the brain cannot make."""
        offer, stage = view.offer, view.state.stage
        said: Payload | None = None
        if isinstance(stage, Asking):
            assert offer is not None
            self._report("decision_requested", turn=view.turn, about=offer.about, options=offer.options, default=offer.default)
            said = None if isinstance(self._brain, Decides) else Decision(choice=offer.default)
        elif offer is not None and not isinstance(stage, Concluding):
            if offer.say is not None:
                said = Discussion(content=offer.say)
            elif offer.again:
                said = self._passed_draft(offer.again)
        if said is not None:
            self._meter.decided_by = DecidedBy(kind="rules")
        return said

    def _passed_draft(self, digest: str) -> Discussion:
        """Return this member's draft that passed its review."""
        draft = self._history.draft(self._me, digest)
        if draft is None:
            raise ConflictError(f"{self._me} has not read the draft that passed in group {self._history.comm_id}.")
        turn, said = draft
        self._meter.thought = self._history.thoughts.get(turn, "")
        return said

    @property
    def _brain(self) -> Brain | FunctionBrain:
        functions, brain = self._runner.functions, self._runner.ports.brain
        if functions.speaks:
            return functions
        charter = self._history.charter
        return RuleBrain() if isinstance(brain, AsksModel) and charter and charter.plan else brain  # rules carry out a plan

    async def _ask(self, decision: str, view: TurnView) -> Payload | Invite:
        """Ask the brain; under a policy the task function of an agent without a model speaks."""
        brain = self._brain
        if decision == "decide" and isinstance(brain, Decides):
            return await brain.decide(view)
        if decision == "conclude":
            return await brain.conclude(view)
        if view.part is not None and isinstance(brain, RuleBrain):
            return await self._runner.speak(self._history, view, self._files)
        return await brain.speak(view)

    async def _keeping_floor(self, view: TurnView, deciding: Awaitable[Payload | Invite]) -> Payload | Invite:
        """Wait for a decision; a member with patience requests more time until it is made."""
        patience = view.state.patience_of(self._me)
        if patience is None:
            return await deciding
        async with beside(self._keep_floor(view.turn, patience.total_seconds())):
            return await deciding

    async def _keep_floor(self, turn: int, patience: float) -> None:
        """Request more time whenever half of it has passed, until cancelled."""
        pause = patience * _ASKED_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = patience * _ASKED_AGAIN_AFTER
            try:
                answer = await self._sender.send_once(self._history, Thinking(), turn)
            except IoaError as error:
                _log.info("floor_not_kept", why=error.message)
                pause = max(pause, seconds_to_wait(error))
                continue
            if isinstance(answer, Accepted):
                pause = patience * _ASKED_AFTER
                self._follower.catch_up(answer.seq)
