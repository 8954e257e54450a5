"""One turn of a member: decide a message, send it, and pass the floor on if no message is accepted.

The brain is asked again with the reasons of each rejection; after the third one the floor passes on, with the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from ioa.agent.brain_port import Brain, Decides
from ioa.agent.function_brain import FunctionBrain
from ioa.agent.groups.membership import Membership
from ioa.agent.metrics import measured
from ioa.agent.rules import RuleBrain
from ioa.agent.send import seconds_to_wait, until_answered
from ioa.agent.tasks.task_runner import TaskRunner
from ioa.agent.team_formation import search_for_others
from ioa.agent.turn_view import TurnView
from ioa.concurrency import beside
from ioa.errors import ConflictError, InvalidInputError, IoaError, SupersededError, reason_of
from ioa.group.rejection import MAX_REFUSALS
from ioa.group.requests import Accepted, InviteMember
from ioa.group.state import Asking, Concluding
from ioa.ports.brain_types import AsksModel, Invite
from ioa.ports.meter import Meter
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy, rejected
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
from ioa.protocol.operation.trace import span_id_of_group
from ioa.protocol.texts import shortened
from ioa.telemetry import live_spans
from ioa.telemetry.fault_points import fault_point

MAX_INVITES = 3
"""Maximum number of invitations within one turn."""

_ASKED_AFTER, _ASKED_AGAIN_AFTER = 0.55, 0.1
"""Shares of its patience after which a deciding member requests more time, and repeats a request that failed."""

_MAX_WHY_BYTES = 2_000
"""Maximum bytes of the reasons in a pass."""

_DECISIONS = {Asking: "decide", Concluding: "conclude"}
"""Names of decisions in the metrics, by the stage of the group."""

_log = structlog.get_logger(__name__)


@dataclass
class Turn:
    """One turn of a member.

    Args:
        member: The member.
        runner: The agent's functions and tasks.
        look: Request a read of the group's log; the event is set when new entries were applied.
        meter: Counts the cost of the member's decisions; what no message has reported is left for the next one.
        number: The number of the turn.
    """

    member: Membership
    runner: TaskRunner
    look: Callable[[], asyncio.Event]
    meter: Meter
    number: int

    def __post_init__(self) -> None:
        self._refusals: list[str] = []
        """Reasons why no message was accepted."""
        self._invited = 0

    async def take(self) -> Accepted | None:
        """Send a message; None if none was accepted."""
        self.member.report("turn_started", turn=self.number)
        self.meter.hear = self.member.call_listener(turn=self.number)
        while len(self._refusals) < MAX_REFUSALS and self._has_floor():
            message: Message | None = None
            code = ""
            try:
                message = await self._decided_message()
                if message is None:
                    return None
                answer = await self.member.send(message)
                if isinstance(answer, Accepted):
                    return self._accepted(message, answer)
                why, code = answer.message, str(answer.code)
            except SupersededError:
                raise
            except Exception as error:  # noqa: BLE001 - a brain may raise anything; it is asked again
                if not isinstance(error, IoaError):
                    _log.exception("thought_failed", turn=self.number)
                why = reason_of(error)
            _log.info("nothing_said", turn=self.number, code=code, why=why)
            self._refusals.append(why)
            self.member.report("message_rejected", turn=self.number, why=why, code=code)
            if message is not None:
                self._count_rejected(message, code)
            await self.look().wait()
        return await self._pass_on() if len(self._refusals) == MAX_REFUSALS else None

    async def _decided_message(self) -> Message | None:
        """Decide a message, after invitations.

        Returns:
            None if an invitation was a watcher's answer, which ends the turn.

        Raises:
            IoaError: No agent can be invited; the brain receives the reason.
        """
        while isinstance(said := await self._decide(), Invite):
            if self._invited == MAX_INVITES:
                raise InvalidInputError(f"This turn has {MAX_INVITES} invitations, which is the maximum: send a message.")
            await self._invite(said)
            self._invited += 1
            if not self._has_floor():
                return None
        if thought := self.meter.thought:
            self.member.history.thoughts[self.number] = thought
            await until_answered(self.member.ports.store.put_thought, self.member.comm_id, self.number, thought)
        by = self.meter.decided_by
        return self.member.message(said, self.number, self.meter.take(), by)

    def _accepted(self, message: Message, answer: Accepted) -> Accepted:
        """Report an accepted message, and return the answer."""
        said = message.payload
        _log.debug("said", kind=said.type, turn=self.number, seq=answer.seq, content=said)
        content = next((text for name in ("choice", "text", "content") if (text := getattr(said, name, None)) is not None), "")
        about = {"turn": self.number, "kind": said.type, "decided_by": message.header.decided_by}
        self.member.report("message_accepted", content=content, **about)
        return answer

    def _count_rejected(self, message: Message, code: str) -> None:
        """Count the cost of a rejected message, which the next message reports."""
        self.meter.note(*rejected(message.header.calls, code))
        if message.header.usage is not None:
            self.meter.add(message.header.usage)

    async def _invite(self, invite: Invite) -> None:
        """Invite an agent, and wait until this member knows it.

        Raises:
            InvalidInputError: No agent was found, it cannot join, or it is a member.
            IoaError: Discovery or group setup rejects the request.
        """
        member, network, agent_id = self.member, self.member.ports.network, invite.agent
        if agent_id is not None and member.state.is_member(agent_id):
            raise InvalidInputError(f"{agent_id} is in the group, or was removed from it: send a message, or invite another agent.")
        if agent_id is None:
            search = search_for_others([invite.need], me=member.me, purpose=member.comm_id)
            [hits] = (await until_answered(network.search, search)).by_need
            agent_id = next((hit.card.agent_id for hit in hits.hits if not member.state.is_member(hit.card.agent_id)), None)
            if agent_id is None:
                raise InvalidInputError(f"No other agent was found for: {invite.need}.")
        about = {"comm_id": member.comm_id, "by": member.me, "turn": self.number, "session": member.session}
        request = validate(InviteMember, {**about, "agent_id": agent_id, "role": invite.role, "why": invite.why})
        answer = await until_answered(network.invite, request)
        if not isinstance(answer, Accepted):
            raise InvalidInputError(answer.message)
        await self.look().wait()

    async def _pass_on(self) -> Accepted | None:
        """Pass the floor with the reasons of the rejections; None if another member has it, or it cannot be passed."""
        view = self.member.view(self.meter)
        if not self._has_floor() or "PASS" not in view.legal:
            return None
        why = "\n".join(dict.fromkeys(self._refusals))
        passed = Pass(cause=PassCause.NO_USABLE_ANSWER, content=shortened(why, _MAX_WHY_BYTES))
        message = self.member.message(passed, self.number, self.meter.take())
        answer = await self.member.send(message)
        return self._accepted(message, answer) if isinstance(answer, Accepted) else None

    def _has_floor(self) -> bool:
        state = self.member.state
        return self.member.me in state.floor and state.turn == self.number

    async def _decide(self) -> Payload | Invite:
        """Decide a message; requests on the way belong to the group's span."""
        fault_point("agent.thinking")
        self.meter.decided_by, self.meter.thought = None, ""
        member, files = self.member, self.member.files
        with live_spans.under(member.charter.traceparent, span_id_of_group(member.comm_id)):
            view = await self.runner.functions.prepare(member.view(self.meter, tuple(self._refusals)), files)
            said: Payload | Invite | None = self._said_by_rule(view)
            if said is None:
                decision = _DECISIONS.get(type(view.state.stage), "speak")
                said = await measured(decision, self.meter, self._keeping_floor(view, self._ask(decision, view)))
        if isinstance(said, Conclusion):
            return await files.fit(said, self.number)
        if isinstance(said, ConcludeGroupDiscussion) and said.conclusion is not None:
            return said.model_copy(update={"conclusion": await files.fit(said.conclusion, self.number)})
        return said

    def _said_by_rule(self, view: TurnView) -> Payload | None:
        """Return a message that a policy prescribes, or the default of a decision that the brain cannot make."""
        offer, stage = view.offer, view.state.stage
        if offer is None:
            return None
        said: Payload | None = None
        if isinstance(stage, Asking):
            about = {"about": offer.about, "options": offer.options, "default": offer.default}
            self.member.report("decision_requested", turn=self.number, **about)
            said = None if isinstance(self._brain, Decides) else Decision(choice=offer.default)
        elif not isinstance(stage, Concluding):
            if offer.say is not None:
                said = Discussion(content=offer.say)
            elif offer.again:
                said = self._passed_draft(offer.again)
        if said is not None:
            self.meter.decided_by = DecidedBy(kind="rules")
        return said

    def _passed_draft(self, digest: str) -> Discussion:
        """Return this member's draft that passed its review."""
        draft = self.member.history.draft(self.member.me, digest)
        if draft is None:
            raise ConflictError(f"{self.member.me} has not read the draft that passed in group {self.member.comm_id}.")
        turn, said = draft
        self.meter.thought = self.member.history.thoughts.get(turn, "")
        return said

    @property
    def _brain(self) -> Brain | FunctionBrain:
        functions, brain = self.runner.functions, self.member.ports.brain
        if functions.speaks:
            return functions
        return RuleBrain() if isinstance(brain, AsksModel) and self.member.charter.plan else brain  # rules carry out a plan

    async def _ask(self, decision: str, view: TurnView) -> Payload | Invite:
        """Ask the brain; under a policy the task function of an agent without a model speaks."""
        brain = self._brain
        if decision == "decide" and isinstance(brain, Decides):
            return await brain.decide(view)
        if decision == "conclude":
            return await brain.conclude(view)
        if view.part is not None and isinstance(brain, RuleBrain):
            return await self.runner.speak(self.member, view)
        return await brain.speak(view)

    async def _keeping_floor(self, view: TurnView, deciding: Awaitable[Payload | Invite]) -> Payload | Invite:
        """Wait for a decision; a member with patience requests more time until it is made."""
        patience = view.state.patience_of(self.member.me)
        if patience is None:
            return await deciding
        async with beside(self._keep_floor(patience.total_seconds())):
            return await deciding

    async def _keep_floor(self, patience: float) -> None:
        """Request more time whenever half of it has passed, until cancelled."""
        pause = patience * _ASKED_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = patience * _ASKED_AGAIN_AFTER
            try:
                answer = await self.member.say_once(Thinking(), self.number)
            except IoaError as error:
                _log.info("floor_not_kept", why=error.message)
                pause = max(pause, seconds_to_wait(error))
                continue
            if isinstance(answer, Accepted):
                pause = patience * _ASKED_AFTER
