"""The brain that asks a language model (paper, section 2.3 and appendix A).

An illegal answer goes back to the model, at most twice, with the legal alternatives. If the model gives no legal answer, or is
unavailable for longer than its patience, the floor is passed on with the reason: no other component decides in its place. One
question returns a complete message: an assignment contains its tasks, and a conclusion its text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta

from ioa.agent.brain_port import TaskView
from ioa.agent.conversation import given_out
from ioa.agent.model import context
from ioa.agent.model.answer_to_message import build_message, fault_of_adding, objection, open_words, private_notes, talks
from ioa.agent.model.answers import (
    Approach,
    Conclude,
    Decide,
    DoAlone,
    LeaderSpeech,
    Speech,
    Step,
    StepOrAdd,
    ruling_on,
    speech_in_part,
)
from ioa.agent.model.budget import Budget, tokens_of
from ioa.agent.model.dialogue import FIRST_PAUSE, LONGEST_PAUSE, DecisionPrompt, Dialogue, NoUsableAnswer, Sleep
from ioa.agent.model.formation import TeamFormation
from ioa.agent.model.planning import TeamPlanning
from ioa.agent.model.prompts import Prompts, excerpt
from ioa.agent.model.reading import MAX_FILE_BYTES, Reader, whole_text
from ioa.agent.model.tally import Cause, Decision, ModelTally
from ioa.agent.model.transcript import joined, transcript
from ioa.agent.rules import RuleBrain
from ioa.agent.subteam_brief import files_of
from ioa.agent.turn_view import TurnView
from ioa.fences import fenced
from ioa.group.joining import ADD
from ioa.group.policy.offer import Offer
from ioa.ports.brain import Alone, Invite, Mission, NobodyFits, TeamLaunch, TeamTools, UndecidedError, Utterance
from ioa.ports.chat_model import ChatMessage, ChatModel
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import Conclusion, Pass, PassCause
from ioa.protocol.messages import Decision as ToDecide
from ioa.protocol.team import TeamSpec
from ioa.protocol.usage import Usage

_KEPT_OF_THE_FLOOR, _KEPT_SHARE_OF_THE_FLOOR = timedelta(seconds=2), 0.3
"""How much of a floor's time is kept for the message's way: so long, or the share of a floor that is short."""
_SITS_OUT = timedelta(seconds=30)
"""How long a model that is away is asked again where others wait for nothing but this decision."""
_MAX_WHY_CHARS = 1_000
_MAX_TASK_BYTES = 24_000
_TURNS_OF_A_TEAM = 2
"""A nested team gets half of the turns that are left, and needs one."""


class ModelBrain:
    """Decide by a language model, within what is legal.

    Args:
        model: The language model.
        name: What the model is called where it is told who decided.
        tally: Counts what the model was asked and each decision that it did not take.
        sleep: How to wait for a number of seconds before a model that is away is asked again.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        name: str = "model",
        budget: Budget | None = None,
        tally: ModelTally | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.tally = tally or ModelTally()
        self.model = name
        self._budget = budget or Budget()
        self._prompts = Prompts()
        self._sleep = sleep
        self._dialogue = Dialogue(model, self._prompts, self._budget, self.tally, sleep)
        self._formation = TeamFormation(self._dialogue, self._prompts, self._budget)
        self._planning = TeamPlanning(self._dialogue, self._prompts, self._budget)

    @property
    def answers(self) -> int:
        """How often the model has answered."""
        return self.tally.answers

    @property
    def failures(self) -> int:
        """How often it has failed since it last answered."""
        return self.tally.failures

    @property
    def patience(self) -> timedelta:
        """How long a decision may take."""
        return self._budget.decision_timeout

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Let the model search for members and launch the group.

        Raises:
            UndecidedError: The model failed.
        """
        self.tally.decisions["form_team"] += 1
        try:
            formed = await self._formation.form(mission, tools)
        except NoUsableAnswer as failure:
            raise self._undecided("form_team", failure) from None
        mission.meter.decided_by = self._by_model
        return formed

    async def plan(self, mission: Mission, tools: TeamTools) -> TeamSpec | None:
        """Plan a team with the model.

        Raises:
            UndecidedError: The model failed.
            UnavailableError: Discovery does not answer.
        """
        self.tally.decisions["plan"] += 1
        try:
            team = await self._planning.plan(mission, tools)
        except NoUsableAnswer as failure:
            raise self._undecided("plan", failure) from None
        mission.meter.decided_by = self._by_model
        return team

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Say what the model says, as long as it is legal. A conclusion goes with its announcement.

        Raises:
            UndecidedError: The model failed, and the group knows no pass.
        """
        self.tally.decisions["speak"] += 1
        try:
            said = await self._speech(view, view.state.limits.floor_timeout)
        except NoUsableAnswer as failure:
            return self._pass("speak", failure, view)
        view.meter.decided_by = self._by_model
        message = build_message(said, view, await _texts(said, view))
        assert not isinstance(message, Conclusion)
        return message

    async def conclude(self, view: TurnView) -> Conclusion | Pass:
        """Let the model write the conclusion. If it fails after the budget was spent, merge the results of the tasks by rules.

        Raises:
            UndecidedError: As in `speak`.
        """
        self.tally.decisions["conclude"] += 1
        try:
            said = await self._speech(view, view.state.limits.conclusion_timeout)
        except NoUsableAnswer as failure:
            if view.state.forced is not Reason.BUDGET or failure.cause.is_away:
                return self._pass("conclude", failure, view)
            self._note_failure("conclude", failure, instead="rules")
            conclusion = await RuleBrain().conclude(view)
            view.meter.add(Usage(fallbacks=1))
            view.meter.decided_by = DecidedBy(kind="rules", instead_of=self.model, cause=failure.cause.value)
            return conclusion
        view.meter.decided_by = self._by_model
        message = build_message(said, view, await _texts(said, view))
        assert isinstance(message, Conclusion | Pass)
        return message

    async def decide(self, view: TurnView) -> ToDecide | Pass | Invite:
        """Choose one of the options that the policy of the group gives, and no other; if the model fails, pass: the default stands.

        A watcher that adds somebody invites whom discovery finds.

        Raises:
            UndecidedError: As in `speak`.
        """
        self.tally.decisions["decide"] += 1
        assert view.offer is not None
        options = view.offer.options
        try:
            await self._pace(view)
            if self._may_not_repair(view):
                raise NoUsableAnswer(Cause.REJECTED, view.refusals[-1])
            chat = self._chat(view, lambda above: context.ruling(self._prompts, view, self._budget, above))
            within = self._within_floor(view, view.state.limits.floor_timeout)
            rules = context.rules(self._prompts, view)
            question = DecisionPrompt(
                chat, view.meter, rules, within=within, reader=Reader(view), about=_about(view), purpose="decide"
            )
            base = Decide if view.offer.about != "watch" else StepOrAdd if ADD in options else Step
            shape = ruling_on(options, base)
            said = await self._dialogue.decide(question, shape, lambda ruling: fault_of_adding(ruling.decision, view))
        except NoUsableAnswer as failure:
            return self._pass("decide", failure, view)
        view.meter.decided_by = self._by_model
        view.meter.thought = private_notes(said, view)
        assert isinstance(said.decision, Decide)
        if isinstance(said.decision, StepOrAdd) and said.decision.choice == ADD:
            added = said.decision
            return Invite(need=added.need.strip(), role=added.role, why=added.content.strip() or added.need.strip())
        named = said.decision.members if isinstance(said.decision, Step) else []
        content = said.decision.content.strip()[:_MAX_WHY_CHARS]
        return ToDecide.model_validate({"choice": said.decision.choice, "content": content, "members": named})

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | TeamLaunch:
        """Do the task in its own words, or form a nested team if the agent may, there is room for one, and one is found.

        The model is asked only where there is a choice. If it fails, the task is done alone.
        """
        alone = Alone(task_desc=task.spec.task_desc)
        state = task.group.state
        may_team_up = task.me.may_team_up and state.depth < state.limits.max_depth and state.turns_left >= _TURNS_OF_A_TEAM
        if not may_team_up:
            return alone
        self.tally.decisions["approach"] += 1
        try:
            text, about = self._approach_question(task), _about(task.group)
            rules = self._prompts.fill("system_approach")
            question = DecisionPrompt(text, task.group.meter, rules, sits_out=_SITS_OUT, about=about, purpose="approach")
            said = await self._dialogue.decide(question, Approach, lambda _: None)
        except NoUsableAnswer as failure:
            self._note_failure("approach", failure, instead="alone")
            return alone
        task.group.meter.decided_by = self._by_model
        if isinstance(said.decision, DoAlone):
            return alone
        mission = Mission(
            text=task.spec.task_desc,
            inputs=(*task.group.charter.inputs, *files_of(task)),
            me=task.me,
            depth=state.depth + 1,
            meter=task.group.meter,
        )
        try:
            team = await self.form_team(mission, tools)
        except UndecidedError:
            return alone
        return team if isinstance(team, TeamLaunch) and team.members else alone

    async def _speech(self, view: TurnView, floor: timedelta) -> Speech:
        await self._pace(view)
        if self._may_not_repair(view):
            raise NoUsableAnswer(Cause.REJECTED, view.refusals[-1])
        if not open_words(view):
            raise NoUsableAnswer(Cause.NOTHING_LEGAL, f"legal: {', '.join(view.legal) or 'nothing'}")

        chat = self._chat(view, lambda above: context.tail(self._prompts, view, self._budget, above))
        within = self._within_floor(view, floor)
        rules = context.rules(self._prompts, view)
        question = DecisionPrompt(chat, view.meter, rules, within=within, reader=Reader(view), about=_about(view))
        let = view.offer or Offer()
        in_part = speech_in_part(asks=let.asks, invites=bool(let.invites), tasks=let.tasks)
        free = Speech if talks(view) else LeaderSpeech
        shape: type[Speech] = free if view.part is None else in_part
        said = await self._dialogue.decide(question, shape, lambda said: objection(said, view))
        view.meter.thought = private_notes(said, view)
        return said

    def _may_not_repair(self, view: TurnView) -> bool:
        """Whether the turn's message was rejected too often, or once after the budget was spent."""
        return len(view.refusals) > self._budget.repairs or (bool(view.refusals) and view.meter.is_exhausted())

    def _within_floor(self, view: TurnView, floor: timedelta) -> timedelta | None:
        """Leave time for the message's way; None for a member with patience, whose client prolongs its time as it thinks."""
        if view.state.patience_of(view.me) is not None:
            return None
        return floor - min(_KEPT_OF_THE_FLOOR, floor * _KEPT_SHARE_OF_THE_FLOOR)

    def _chat(self, view: TurnView, tail_of: Callable[[int], str]) -> Callable[[int], list[ChatMessage]]:
        """Return a function that writes head, log and tail in at most about `room` tokens.

        `tail_of` receives the tokens above the tail. The room of the tail is rounded up, so that it does not change the log.
        """

        def messages(room: int) -> list[ChatMessage]:
            head = context.head(self._prompts, view, room)
            step = max(50, min(1_000, room // 8))
            log = transcript(view, room - tokens_of(head) - -(-tokens_of(tail_of(room)) // step) * step)
            above = [ChatMessage("user", head), *log]
            return joined([*above, ChatMessage("user", tail_of(sum(tokens_of(message.content) for message in above)))])

        return messages

    def _approach_question(self, task: TaskView) -> Callable[[int], list[ChatMessage]]:
        view, spec = task.group, task.spec
        assigner = given_out(view, spec).asked_by
        by = "You assigned this task to yourself" if assigner == view.me else f"{assigner} assigned this task to you"

        def tail(above: int) -> str:
            return self._prompts.fill(
                "approach",
                standing=context.standing_and_memory(view, self._budget, above),
                assigned=f"You are {view.me}. {by}:",
                task=fenced("task", excerpt(spec.task_desc, _MAX_TASK_BYTES), spec.task_id),
            )

        return self._chat(view, tail)

    @property
    def _by_model(self) -> DecidedBy:
        return DecidedBy(kind="model", name=self.model)

    def _note_failure(self, decision: Decision, failure: NoUsableAnswer, *, instead: str) -> None:
        self.tally.not_decided(decision, failure.cause, failure.why, instead=instead)

    def _pass(self, decision: Decision, failure: NoUsableAnswer, view: TurnView) -> Pass:
        """Return the pass that says why the model did not decide; nobody did."""
        view.meter.decided_by = None
        if "PASS" not in view.legal:
            raise self._undecided(decision, failure)
        self._note_failure(decision, failure, instead="pass")
        cause = PassCause.MODEL_UNAVAILABLE if failure.cause.is_away else PassCause.NO_USABLE_ANSWER
        return Pass(cause=cause, content=f"{self.model}: {failure.why}"[:_MAX_WHY_CHARS])

    def _undecided(self, decision: Decision, failure: NoUsableAnswer) -> UndecidedError:
        self._note_failure(decision, failure, instead="nobody")
        return UndecidedError(f"{self.model} did not decide: {failure.why}", is_away=failure.cause.is_away)

    async def _pace(self, view: TurnView) -> None:
        """Wait before a model is asked again that was away when everybody had passed: each time for as long as it has lasted.

        Else members whose models refuse at once would pass the floor around as fast as they can.
        """
        passes = {one.agent_id: one for one in view.state.passes}
        mine = passes.get(view.me)
        alone = view.part is not None  # a policy waits for the member that has the floor
        if mine is None or view.at is None or not (alone or passes.keys() >= set(view.state.willing())):
            return
        lasted = (view.at - mine.since).total_seconds()
        floor = view.state.limits.floor_timeout.total_seconds()
        await self._sleep(min(max(lasted, FIRST_PAUSE), LONGEST_PAUSE, floor / 2))


def _about(view: TurnView) -> tuple[str, ...]:
    """Whose question it is, and in which group: its prompts grow at their end."""
    return view.me, view.state.comm_id


async def _texts(said: Speech, view: TurnView) -> Mapping[str, str]:
    """Read the whole texts of the results that a conclusion contains."""
    decision, texts, left = said.decision, dict[str, str](), MAX_FILE_BYTES
    if isinstance(decision, Conclude):
        for name in dict.fromkeys([*(part.result for part in decision.answer_from), *(file.of for file in decision.files or ())]):
            texts[name] = await whole_text(view, TaskId(name), left)
            left = max(0, left - len(texts[name].encode("utf-8", "replace")))
    return texts
