"""The brain that asks a language model (paper, section 2.3 and appendix A).

Whatever the model answers, what leaves here is legal: an answer that is not goes back to the model, at most twice, with what would
be, and then the rules decide in its place. One question brings a whole message: where the paper asks again for the tasks of an
assignment and the triggers of a pause, they are part of the answer here, and so is the conclusion of whoever announces it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from ioa.agent.agent_metrics import repeated_messages
from ioa.agent.model import context
from ioa.agent.model.answers import Approach, Assign, Conclude, Discuss, DoAlone, PauseOn, Read, Speech
from ioa.agent.model.budget import Budget, tokens_of
from ioa.agent.model.dialogue import Dialogue, NoUsableAnswer, Question
from ioa.agent.model.formation import Findings, TeamFormation
from ioa.agent.model.legality import is_mute, objection
from ioa.agent.model.log_lines import fitting, lines_of
from ioa.agent.model.payloads import conclusion_of, utterance_of
from ioa.agent.model.private_memory import PrivateMemory
from ioa.agent.model.prompts import Prompts, cut, defused, fenced
from ioa.agent.model.reading import Reader, whole_text
from ioa.agent.model.tally import Cause, Decision, Tally
from ioa.group.events import name_of
from ioa.ports.brain import Alone, Brain, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.ports.chat_model import ChatModel
from ioa.ports.meter import Meter
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import Conclusion
from ioa.protocol.usage import Usage

_SHARE_OF_THE_FLOOR = 0.7
"""How much of the floor's time a decision may take; the rest is for the rules and for the message's way."""
_TURNS_OF_A_TEAM = 2
"""A nested team gets half of the turns that are left, and needs one."""


class ModelBrain:
    """Decide by a language model, within what is legal.

    Args:
        model: The language model.
        fallback: Decides where the model fails; its answers are taken as they are.
        tally: Counts what the model was asked and each decision that was taken in its place.
    """

    def __init__(
        self,
        model: ChatModel,
        fallback: Brain,
        *,
        budget: Budget | None = None,
        prompts: Prompts | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.tally = tally or Tally()
        self._fallback = fallback
        self._budget = budget or Budget()
        self._prompts = prompts or Prompts()
        self._dialogue = Dialogue(model, self._prompts, self._budget, self.tally)
        self._formation = TeamFormation(self._dialogue, self._prompts, self._budget)
        self._memory = PrivateMemory()

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Search and launch as the model says; with the best hits, or else by the rules, if it fails."""
        self.tally.decisions["form_team"] += 1
        findings = Findings()
        try:
            return await self._formation.form(mission, tools, findings)
        except NoUsableAnswer as failure:
            self._fell_back("form_team", failure, mission.meter)
            if findings.cards:
                return findings.best_team(mission.me.agent_id)
            return await self._fallback.form_team(mission, tools)

    async def speak(self, view: GroupView) -> Utterance:
        """Say what the model says, as long as it is legal. A conclusion is announced, and kept for `conclude`."""
        self.tally.decisions["speak"] += 1
        if context.repeated(view) and not view.refusals:  # else the turn has been counted
            repeated_messages.inc()
        try:
            said = await self._speech(view, view.state.limits.floor_timeout)
        except NoUsableAnswer as failure:
            self._fell_back("speak", failure, view.meter)
            return await self._fallback.speak(view)
        if isinstance(said, Conclude):
            self._memory.announce(view, await _conclusion(said, view))
        return utterance_of(said, view)

    async def conclude(self, view: GroupView) -> Conclusion:
        """State the conclusion that was written when it was announced, or let the model write it now."""
        announced = self._memory.announced(view)
        if announced is not None:
            return announced
        self.tally.decisions["conclude"] += 1
        try:
            said = await self._speech(view, view.state.limits.conclusion_timeout)
        except NoUsableAnswer as failure:
            self._fell_back("conclude", failure, view.meter)
            return await self._fallback.conclude(view)
        assert isinstance(said, Conclude)
        return await _conclusion(said, view)

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Do the task in its own words, or form a nested team if the agent may, there is room for one, and one is found.

        The model is asked only where there is a choice.
        """
        alone = Alone(task_desc=task.spec.task_desc)
        state = task.group.state
        may_team_up = task.me.may_team_up and state.depth < state.limits.max_depth and state.turns_left >= _TURNS_OF_A_TEAM
        if not may_team_up:
            return alone
        self.tally.decisions["approach"] += 1
        try:
            question = Question(self._approach_question(task), task.group.meter)
            said = await self._dialogue.decide(question, Approach, lambda said: None)
        except NoUsableAnswer as failure:
            self._fell_back("approach", failure, task.group.meter)
            return await self._fallback.approach(task, tools)
        if isinstance(said.decision, DoAlone):
            return alone
        mission = Mission(
            text=task.spec.task_desc,
            inputs=task.group.charter.inputs,
            me=task.me,
            depth=state.depth + 1,
            meter=task.group.meter,
        )
        team = await self.form_team(mission, tools)
        return team if isinstance(team, Team) and team.members else alone

    async def _speech(self, view: GroupView, floor: timedelta) -> Discuss | Assign | PauseOn | Conclude:
        if len(view.refusals) > self._budget.repairs:
            raise NoUsableAnswer(Cause.REJECTED, view.refusals[-1])
        if is_mute(view):
            raise NoUsableAnswer(Cause.NOTHING_LEGAL, f"legal: {', '.join(map(name_of, view.legal)) or 'nothing'}")

        def text(room: int) -> str:
            seen = _within(view, room)
            return self._situation(seen, room, lambda above: context.tail(self._prompts, seen, self._budget, above))

        question = Question(text, view.meter, within=floor * _SHARE_OF_THE_FLOOR, reader=Reader(view))
        said = await self._dialogue.decide(question, Speech, lambda said: objection(said, view))
        self._memory.note_thought(view, said.thought)
        assert not isinstance(said.decision, Read)
        return said.decision

    def _situation(self, view: GroupView, room: int, tail_of: Callable[[int], str]) -> str:
        """Head, log and tail in at most about `room` tokens; `tail_of` is told how many stand above it."""
        head = context.head(self._prompts, view, room)
        lines = lines_of(view, self._memory.thoughts(view))
        free = room - tokens_of(head)
        tail = tail_of(room)
        log = fitting(lines, max(0, free - context.tail_allowance(tail, room)))
        return "\n\n".join(filter(None, (head, log, tail_of(tokens_of(head) + tokens_of(log)))))

    def _approach_question(self, task: TaskView) -> Callable[[int], str]:
        view, spec = task.group, task.spec
        assigner = next((one.assigner for one in view.state.open_tasks if one.task_id == spec.task_id), view.charter.owner)

        def text(room: int) -> str:
            seen = _within(view, room)
            described = fenced("task", cut(defused(spec.task_desc), room), spec.task_id)
            return self._situation(
                seen,
                room,
                lambda above: self._prompts.fill(
                    "approach",
                    me=task.me.agent_id,
                    standing=context.standing_and_sight(seen, self._budget, above),
                    assigner="you yourself" if assigner == task.me.agent_id else assigner,
                    task=described,
                ),
            )

        return text

    def _fell_back(self, decision: Decision, failure: NoUsableAnswer, meter: Meter) -> None:
        meter.add(Usage(fallbacks=1))
        self.tally.fell_back(decision, failure.cause, failure.why)


def _within(view: GroupView, room: int) -> GroupView:
    """Leave two thirds of a prompt's room to all else than what the agent sees; `room` is in tokens of three bytes."""
    return replace(view, observation=cut(view.observation, room))


async def _conclusion(said: Conclude, view: GroupView) -> Conclusion:
    """Return the conclusion with the results that it is to hold word for word."""
    texts = [await whole_text(view, TaskId(task_id)) for task_id in dict.fromkeys(said.answer_from)]
    return conclusion_of(said, texts, view)
