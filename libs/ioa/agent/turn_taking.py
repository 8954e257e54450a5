"""Taking one's turns in a group: deciding what to say, having it said, and passing the floor on where nothing can be.

What is refused is told to whoever decides, who tries again; after the third time the floor passes on, with the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import structlog

from ioa.agent import listening
from ioa.agent.agent_metrics import count_decision, timed_decision
from ioa.agent.asking import seconds_to_wait, until_answered
from ioa.agent.history import GroupHistory
from ioa.agent.listening import AgentEvent, AttemptRefused, Decided, DecisionAsked, TurnStarted
from ioa.agent.outbox import Outbox, duty_of_turn
from ioa.agent.rules import RuleBrain
from ioa.agent.searching import search_for_others
from ioa.agent.task_runner import TaskRunner
from ioa.agent.workspace import GroupFiles
from ioa.cancellation import TaskGroup
from ioa.errors import ConflictError, InvalidInputError, IoaError, SupersededError
from ioa.group.budget import is_exhausted
from ioa.group.rejection import MAX_REFUSALS
from ioa.group.requests import Accepted, InviteMember
from ioa.group.state import Asking, Concluding
from ioa.ports.brain import Decides, GroupView, Invite
from ioa.ports.meter import Meter
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.messages import (
    AskUser,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    PassCause,
    Payload,
)
from ioa.protocol.model_calls import rejected
from ioa.protocol.texts import shortened
from ioa.protocol.trace import span_id_of_group
from ioa.protocol.usage import NO_OVERHEAD, overhead_of_refused
from ioa.telemetry import live_spans
from ioa.telemetry.fault_points import fault_point

MAX_INVITES = 3
"""How many a brain may invite within one turn; after that it has to say something."""

_ASKED_AFTER, _ASKED_AGAIN_AFTER = 0.55, 0.1
"""After which share of its patience a member that decides asks for more time, and asks again if it was not heard."""

_MAX_WHY_BYTES = 2_000
"""How much a pass tells of what was refused."""

_DECISIONS = {Asking: "decide", Concluding: "conclude"}
"""How a decision is counted, by the stage of the group that it is taken in."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class FollowsLog(Protocol):
    """What keeps a member's knowledge of its group up to date while it takes a turn."""

    def look(self) -> Awaitable[None]:
        """Have the log asked for what is new; done when it was."""

    def catch_up(self, head: int) -> None:
        """Have what was missed looked for, up to `head` at least."""


class TurnTaker:
    """Takes one member's turns in one group, each once.

    Args:
        runner: Decides by the agent's functions and brain, and has its listeners.
        outbox: Says what was decided.
        history: What the member knows of the group.
        files: The group's files.
        follower: Keeps that knowledge up to date.
    """

    def __init__(self, runner: TaskRunner, outbox: Outbox, history: GroupHistory, files: GroupFiles, follower: FollowsLog) -> None:
        self._me = outbox.me
        self._runner = runner
        self._outbox = outbox
        self._history = history
        self._files = files
        self._follower = follower
        self._meter = Meter()
        self._meter.is_exhausted = self._is_budget_exhausted
        self._unsaid: dict[str, Message] = {}

    def resume(self, unsaid: Mapping[str, Message]) -> None:
        """Take over what an earlier session prepared and may not have said, by the keys of the duties."""
        self._unsaid = dict(unsaid)

    async def take(self, turn: int) -> Accepted | None:
        """Say something for the turn that was granted; None if it was not to be."""
        refusals: list[str] = []
        invited: list[Invite] = []
        self._tell(TurnStarted, turn=turn)
        self._meter.hear = self._runner.hear_model(self._history, turn=turn)
        while len(refusals) < MAX_REFUSALS and self._has_floor(turn):
            message: Message | None = None
            code = ""
            try:
                message = self._unsaid.pop(duty_of_turn(turn), None)
                message = message or await self._prepared(tuple(refusals), turn, invited)
                if message is None:
                    return None
                answer = await self._outbox.send(message)
            except SupersededError:
                raise
            except IoaError as error:
                _log.warning("nothing_said", comm_id=self._history.comm_id, agent_id=self._me, turn=turn, why=str(error))
                refusals.append(str(error))
            except Exception as error:  # noqa: BLE001 - a brain may raise anything; the next attempt is told
                _log.exception("thought_failed", comm_id=self._history.comm_id, agent_id=self._me, turn=turn)
                refusals.append(f"{type(error).__name__}: {error}")
            else:
                if isinstance(answer, Accepted):
                    _log.debug("said", kind=message.payload.type, turn=turn, seq=answer.seq, content=message.payload)
                    self._tell_said(message)
                    return answer
                _log.info("refused", comm_id=self._history.comm_id, agent_id=self._me, code=answer.code, why=answer.message)
                refusals.append(answer.message)
                code = str(answer.code)
            self._tell(AttemptRefused, turn=turn, why=refusals[-1], code=code)
            if message is not None:
                self._meter.note(*rejected(message.header.calls, code))
            if message is not None and message.header.usage is not None:
                self._meter.add(message.header.usage)  # it was spent all the same: the next message says so
                self._meter.set_apart(overhead_of_refused(message.header.usage, message.header.overhead or NO_OVERHEAD))
            await self._follower.look()
        return await self.pass_on(turn, refusals) if len(refusals) == MAX_REFUSALS else None

    async def _prepared(self, refusals: tuple[str, ...], turn: int, invited: list[Invite]) -> Message | None:
        """Decide what to say, when all have joined who are invited first; `invited` holds whom this turn has invited.

        A watcher that adds somebody has answered by that: then there is nothing to say.

        Raises:
            IoaError: Nobody more can be invited; the brain is told why.
        """
        while isinstance(said := await self._traced(refusals), Invite):
            if len(invited) == MAX_INVITES:
                raise InvalidInputError(f"This turn has invited {MAX_INVITES}, which is the most: say something.")
            await self._invite(said, turn)
            invited.append(said)
            if not self._has_floor(turn):
                return None
        await self._keep_thought(turn)
        by = self._meter.decided_by
        return await self._outbox.prepare(self._history, said, turn, self._meter.take(), by=by)

    async def _invite(self, invite: Invite, turn: int) -> None:
        """Have somebody join the group, and wait until this member knows it.

        Raises:
            InvalidInputError: Nobody can, or who is named is in the group; the brain is told why.
            ConflictError: The floor is another's by now.
            IoaError: Discovery or group setup says why not.
        """
        state, comm_id = self._history.state, self._history.comm_id
        if state is None or not self._has_floor(turn):
            raise ConflictError(f"Nobody is invited in turn {turn} any more: the floor is another's.")
        agent_id = invite.agent
        if agent_id is not None and state.is_member(agent_id):
            raise InvalidInputError(f"{agent_id} is in the group, or was removed from it: say something, or invite somebody else.")
        if agent_id is None:
            search = search_for_others([invite.need], me=self._me, purpose=comm_id, budget=None)
            found = await until_answered(lambda: self._outbox.network.search(search), comm_id=comm_id, agent_id=self._me)
            others = [hit.card.agent_id for hit in found.by_need[0].hits if not state.is_member(hit.card.agent_id)]
            if not others:
                raise InvalidInputError(f"Nobody else was found for: {invite.need}.")
            agent_id = others[0]
        about = {"comm_id": comm_id, "by": self._me, "turn": turn, "session": self._outbox.session}
        request = validate(InviteMember, {**about, "agent_id": agent_id, "role": invite.role, "why": invite.why})
        answer = await until_answered(lambda: self._outbox.network.invite(request), comm_id=comm_id, agent_id=self._me)
        if not isinstance(answer, Accepted):
            raise InvalidInputError(answer.message)
        self._follower.catch_up(answer.seq)
        await self._follower.look()

    async def pass_on(self, turn: int, refusals: Sequence[str]) -> Accepted | None:
        """Pass the floor on in which nothing could be said, with the reasons; None if it is another's, or cannot be passed."""
        view = self._history.view(self._me, self._outbox.clock.now(), self._meter)
        if not self._has_floor(turn) or Pass not in view.legal:
            return None
        why = "\n".join(dict.fromkeys(refusals))
        passed = Pass(cause=PassCause.NO_USABLE_ANSWER, content=shortened(why, _MAX_WHY_BYTES))
        message = await self._outbox.prepare(self._history, passed, turn, self._meter.take())
        answer = await self._outbox.send(message)
        count_decision(_DECISIONS.get(type(view.state.stage), "speak"), None, str(passed.cause))
        if not isinstance(answer, Accepted):
            return None
        self._tell_said(message)
        return answer

    def _is_budget_exhausted(self) -> bool:
        state = self._history.state
        return state is not None and is_exhausted(state, self._meter.total)

    def _has_floor(self, turn: int) -> bool:
        state = self._history.state
        return state is not None and self._me in state.floor and state.turn == turn

    async def _traced(self, refusals: tuple[str, ...]) -> Payload | Invite:
        """Think; what is asked on the way is a part of the group's span."""
        assert self._history.charter is not None
        with live_spans.under(self._history.charter.traceparent, span_id_of_group(self._history.comm_id)):
            return await self._think(refusals)

    async def _think(self, refusals: tuple[str, ...]) -> Payload | Invite:
        fault_point("agent.thinking")
        self._meter.decided_by, self._meter.thought = None, ""
        view = self._history.view(self._me, self._outbox.clock.now(), self._meter, refusals, self._files)
        view = await self._runner.hooks.observed(view, self._files)
        match view.state.stage:
            case Asking():
                return await self._decide(view)
            case Concluding():
                return await self._conclude(view)
            case _:
                return await self._speak(view)

    async def _speak(self, view: GroupView) -> Payload | Invite:
        """Say something in the discussion; what a policy has said already is said again without asking anybody."""
        if view.offer is not None and view.offer.say is not None:
            self._meter.decided_by = DecidedBy(kind="rules")
            return Discussion(content=view.offer.say)
        if view.offer is not None and view.offer.again:
            self._meter.decided_by = DecidedBy(kind="rules")
            return self._passed_draft(view.offer.again)
        hooks, brain = self._runner.hooks, self._runner.ports.brain
        said: Payload | Invite
        if hooks.speaks:
            said = await self._decided("speak", view, hooks.speak(view, self._files))
        elif view.part is not None and isinstance(brain, RuleBrain):
            said = await self._decided("speak", view, self._runner.say(self._history, view, self._files))
        else:
            said = await self._decided("speak", view, brain.speak(view))
        if not isinstance(said, ConcludeGroupDiscussion) or said.conclusion is None:
            return said
        return said.model_copy(update={"conclusion": await self._fitting(said.conclusion, view)})

    async def _conclude(self, view: GroupView) -> Conclusion | Pass:
        hooks = self._runner.hooks
        concluding = hooks.conclude(view, self._files) if hooks.speaks else self._runner.ports.brain.conclude(view)
        said = await self._decided("conclude", view, concluding)
        return said if isinstance(said, Pass) else await self._fitting(said, view)

    async def _decided(self, decision: str, view: GroupView, deciding: Awaitable[T]) -> T:
        """Wait for a decision, which is timed, and counted by who took it."""
        with timed_decision(decision):
            said = await self._keeping_floor(view, deciding)
        count_decision(decision, self._meter.decided_by, str(said.cause) if isinstance(said, Pass) else "")
        return said

    def _passed_draft(self, digest: str) -> Discussion:
        """Return what was said and passed; no brain is asked for it again."""
        draft = self._history.draft(self._me, digest)
        if draft is None:
            raise ConflictError(f"The memory of {self._me} lacks the draft that was passed in group {self._history.comm_id}.")
        turn, said = draft
        self._meter.thought = self._history.thoughts.get(turn, "")
        return said

    async def _decide(self, view: GroupView) -> Payload | Invite:
        """Choose what a policy asks for; without anything that decides the default stands, which a member says at once."""
        offered, hooks, brain = view.offer, self._runner.hooks, self._runner.ports.brain
        assert offered is not None
        self._tell(DecisionAsked, turn=view.state.turn, about=offered.about, options=offered.options, default=offered.default)
        if hooks.speaks:
            return await self._decided("decide", view, hooks.speak(view, self._files))
        if isinstance(brain, Decides):
            return await self._decided("decide", view, brain.decide(view))
        self._meter.decided_by = DecidedBy(kind="rules")
        return Decision(choice=offered.default)

    async def _keep_thought(self, turn: int) -> None:
        """Keep what was thought on the way, so that this agent finds it in its later turns, and after a restart."""
        if thought := self._meter.thought:
            self._history.thoughts[turn] = thought
            comm_id = self._history.comm_id
            await until_answered(lambda: self._outbox.store.put_thought(comm_id, turn, thought), comm_id=comm_id, agent_id=self._me)

    async def _fitting(self, conclusion: Conclusion, view: GroupView) -> Conclusion:
        return await self._files.fitting(conclusion, view.state.turn)

    async def _keeping_floor(self, view: GroupView, deciding: Awaitable[T]) -> T:
        """Wait for a decision; a member with patience asks for more time as long as it takes."""
        patience = view.state.patience_of(self._me)
        if patience is None:
            return await deciding
        failure: Exception | None = None
        async with TaskGroup() as group:
            keeping = group.create_task(self._keep_floor(view.state.turn, patience.total_seconds()))
            try:
                decided = await deciding
            except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                failure = error
            keeping.cancel()
        if failure is not None:
            raise failure
        return decided

    async def _keep_floor(self, turn: int, patience: float) -> None:
        """Ask for more time whenever more than half of it has passed, for ever."""
        pause = patience * _ASKED_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = patience * _ASKED_AGAIN_AFTER
            try:
                answer = await self._outbox.keep_floor(self._history, turn)
            except IoaError as error:
                _log.info("floor_not_kept", comm_id=self._history.comm_id, agent_id=self._me, why=error.message)
                pause = max(pause, seconds_to_wait(error))
                continue
            if isinstance(answer, Accepted):
                pause = patience * _ASKED_AFTER
                self._follower.catch_up(answer.seq)

    def _tell(self, kind: type[AgentEvent], /, **what: Any) -> None:
        """Tell the agent's listeners of something in this group."""
        assert self._history.charter is not None
        goal_id = self._history.charter.goal_id
        self._runner.hooks.listeners.tell(kind(self._me, goal_id, self._history.comm_id, **what))

    def _tell_said(self, message: Message) -> None:
        said, about = message.payload, {"turn": message.header.turn, "decided_by": message.header.decided_by}
        if isinstance(said, Decision):
            self._tell(Decided, choice=said.choice, why=said.content, **about)
        else:
            content = said.text if isinstance(said, AskUser) else getattr(said, "content", "")
            self._tell(listening.MessageTaken, kind=said.type, content=content, **about)
