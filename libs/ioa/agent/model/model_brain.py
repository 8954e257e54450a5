"""The brain that asks a language model (paper, section 2.3 and appendix A).

An illegal answer goes back to the model, at most twice, with the legal alternatives. If the model gives no legal answer, or is
unavailable for longer than its patience, the floor is passed on with the reason: no other component decides in its place. One
question returns a complete message: an assignment contains its tasks, and a conclusion its text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from functools import partial
from typing import TypeVar

import structlog

from ioa.agent.brain_port import TaskView
from ioa.agent.model import turn_prompt
from ioa.agent.model.answer_to_message import Answer, build_message, open_words, turn_shape
from ioa.agent.model.dialogue import FIRST_PAUSE, LONGEST_PAUSE, Adviser, Dialogue, NoUsableAnswerError, Sleep
from ioa.agent.model.formation import form_team, plan_team
from ioa.agent.model.metered_calls import MAX_REPAIRS, Budget, Cause
from ioa.agent.model.reading import Reader
from ioa.agent.rules import RuleBrain
from ioa.agent.tasks.subteam_brief import files_of
from ioa.agent.turn_view import TurnView
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TeamLaunch, TeamTools, UndecidedError, Utterance
from ioa.ports.chat_model import ChatModel
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion, Decision, Pass, PassCause
from ioa.protocol.teams.team_file import TeamSpec
from ioa.protocol.usage import Usage

_MAX_WHY_CHARS = 1_000
_TURNS_OF_A_TEAM = 2
"""A nested team gets half of the turns that are left, and needs one."""

T = TypeVar("T")
_log = structlog.get_logger(__name__)


class ModelBrain:
    """Decides by a language model, within the legal messages.

    Args:
        model: The language model.
        budget: The model's name, limits and prices.
        sleep: Waits for a number of seconds before an unavailable model is asked again.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        budget: Budget | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._adviser = Adviser(model, budget or Budget(), sleep)
        self.model = self._adviser.budget.model

    @property
    def failures(self) -> int:
        """Number of failures since its last answer."""
        return self._adviser.failures

    @property
    def patience(self) -> timedelta:
        """Timeout of a decision."""
        return self._adviser.budget.decision_timeout

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Let the model search for members and launch the group.

        Raises:
            UndecidedError: The model failed.
        """
        return await self._mission("form_team", mission, form_team(mission, tools, self._adviser))

    async def plan(self, mission: Mission, tools: TeamTools) -> TeamSpec | None:
        """Plan a team with the model.

        Raises:
            UndecidedError: The model failed.
            UnavailableError: Discovery does not answer.
        """
        return await self._mission("plan", mission, plan_team(mission, tools, self._adviser))

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Return the message of the model; a conclusion is sent with its announcement. A model that fails passes the floor.

        Raises:
            UndecidedError: The model failed, and the group knows no pass.
        """
        message = await self._turn("speak", view)
        assert not isinstance(message, Conclusion | Decision)
        return message

    async def conclude(self, view: TurnView) -> Conclusion | Pass:
        """Let the model write the conclusion. If it fails after the budget was spent, merge the results of the tasks by rules.

        Raises:
            UndecidedError: As in `speak`.
        """
        message = await self._turn("conclude", view)
        assert isinstance(message, Conclusion | Pass)
        return message

    async def decide(self, view: TurnView) -> Decision | Pass | Invite:
        """Choose one of the options that the policy of the group gives; a model that fails passes: the default is used.

        Raises:
            UndecidedError: As in `speak`.
        """
        message = await self._turn("decide", view)
        assert isinstance(message, Decision | Pass | Invite)
        return message

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Form a nested team, if the agent may, there is room for one, and the model chooses members; otherwise return None."""
        state = task.group.state
        if not task.me.may_team_up or state.depth >= state.limits.max_depth or state.turns_left < _TURNS_OF_A_TEAM:
            return None
        inputs = (*task.group.charter.inputs, *files_of(task))
        try:
            team = await self.form_team(Mission(task.spec.task_desc, inputs, task.me, meter=task.group.meter), tools)
        except UndecidedError:
            return None
        return team if isinstance(team, TeamLaunch) and team.members else None

    async def _turn(self, decision: str, view: TurnView) -> Answer | Conclusion:
        """Return the model's message, or a pass that states why it did not decide.

        Raises:
            UndecidedError: The model failed, and the group knows no pass.
        """
        meter = view.meter
        try:
            message = await self._message(decision, view)
        except NoUsableAnswerError as failure:
            self._note_failure(decision, failure)
            if decision == "conclude" and view.state.forced is Reason.BUDGET and not failure.is_away:
                conclusion = await RuleBrain().conclude(view)
                meter.add(Usage(fallbacks=1))
                meter.decided_by = DecidedBy(kind="rules", instead_of=self.model, cause=failure.cause.value)
                return conclusion
            meter.decided_by = None
            if "PASS" not in view.legal:
                raise
            cause = PassCause.MODEL_UNAVAILABLE if failure.is_away else PassCause.NO_USABLE_ANSWER
            return Pass(cause=cause, content=f"{self.model}: {failure.why}"[:_MAX_WHY_CHARS])
        meter.decided_by = self._by_model
        return message

    async def _mission(self, decision: str, mission: Mission, deciding: Awaitable[T]) -> T:
        try:
            decided = await deciding
        except NoUsableAnswerError as failure:
            self._note_failure(decision, failure)
            raise
        mission.meter.decided_by = self._by_model
        return decided

    async def _message(self, decision: str, view: TurnView) -> Answer:
        """Return the model's message.

        Raises:
            NoUsableAnswerError: The model failed, or messages of this turn were rejected too often; after the budget, once.
        """
        await self._pace(view)
        if len(view.refusals) > MAX_REPAIRS or (view.refusals and view.meter.is_exhausted()):
            raise NoUsableAnswerError(self.model, Cause.REJECTED, view.refusals[-1])
        if not open_words(view):
            raise NoUsableAnswerError(self.model, Cause.NOTHING_LEGAL, f"legal: {', '.join(view.legal) or 'nothing'}")
        dialogue = Dialogue(
            self._adviser,
            "decide" if decision == "decide" else "speak",
            turn_prompt.rules(view),
            turn_prompt.chat(view, turn_prompt.turn_tail(view)),
            view.meter,
            (view.me, view.state.comm_id),
            reader=Reader(view),
        )
        return await dialogue.decide(turn_shape(view), partial(build_message, view=view))

    @property
    def _by_model(self) -> DecidedBy:
        return DecidedBy(kind="model", name=self.model)

    def _note_failure(self, decision: str, failure: NoUsableAnswerError) -> None:
        _log.warning("model_did_not_decide", decision=decision, cause=str(failure.cause), content=failure.why[:500])

    async def _pace(self, view: TurnView) -> None:
        """Wait before the model is asked again after a round of passes: each time as long as the passes have lasted.

        Otherwise members whose models refuse at once would pass the floor around as fast as they can.
        """
        mine = next((one for one in view.state.passes if one.agent_id == view.me), None)
        if mine is not None and view.at is not None:
            lasted, floor = (view.at - mine.since).total_seconds(), view.state.limits.floor_timeout.total_seconds()
            await self._adviser.sleep(min(max(lasted, FIRST_PAUSE), LONGEST_PAUSE, floor / 2))
