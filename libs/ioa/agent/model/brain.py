"""The brain that asks a language model (paper, section 2.3 and appendix A).

Whatever the model answers, what leaves here is legal: an answer can only name what is legal now, a useless one goes back to
the model at most twice, and then the rules decide in its place. One question brings a whole message: where the paper asks again
for the tasks of an assignment and the triggers of a pause, they are part of the answer here, which saves a call and leaves no
half-made decision behind.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from ioa.agent.agent_metrics import repeated_messages
from ioa.agent.model import answers, context
from ioa.agent.model.budget import Budget
from ioa.agent.model.dialogue import Dialogue, NoUsableAnswer
from ioa.agent.model.formation import Findings, TeamFormation
from ioa.agent.model.payloads import artifacts_of, utterance_of
from ioa.agent.model.prompts import Prompts, clipped, defused, fenced
from ioa.agent.model.tally import Cause, Decision, Tally
from ioa.group.events import name_of
from ioa.ports.brain import Alone, Brain, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.ports.chat_model import ChatModel
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion
from ioa.protocol.usage import Usage

_SHARE_OF_THE_FLOOR = 0.7
"""How much of the floor's time a decision may take; the rest is for the rules and for the message's way."""


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

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Search and launch as the model says; with the best hits, or else by the rules, if it fails."""
        self.tally.decisions["form_team"] += 1
        findings = Findings()
        try:
            return await self._formation.form(self._system(mission.me), mission, tools, findings)
        except NoUsableAnswer as failure:
            self._fell_back("form_team", failure, mission.meter)
            if findings.cards:
                return findings.best_team(mission.me.agent_id)
            return await self._fallback.form_team(mission, tools)

    async def speak(self, view: GroupView) -> Utterance:
        """Say what the model says, as long as it is legal."""
        self.tally.decisions["speak"] += 1
        try:
            return utterance_of(await self._speech(view), view)
        except NoUsableAnswer as failure:
            self._fell_back("speak", failure, view.meter)
            return await self._fallback.speak(view)

    async def conclude(self, view: GroupView) -> Conclusion:
        """Let the model write the conclusion; the files come from the tasks."""
        self.tally.decisions["conclude"] += 1
        prompt = self._prompts.fill("conclude", **self._situation(view), tasks=context.tasks(view, self._budget))
        try:
            said = await self._dialogue.decide(
                self._system(_card(view)),
                prompt,
                answers.conclusion(self._budget),
                view.meter,
                within=_share(view.state.limits.conclusion_timeout),
            )
        except NoUsableAnswer as failure:
            self._fell_back("conclude", failure, view.meter)
            return await self._fallback.conclude(view)
        assert isinstance(said, answers.Conclude)
        return Conclusion(
            content=said.content,
            reason=Reason.CONCLUDED if said.goal_reached else Reason.FAILED,
            artifacts=artifacts_of(view),
        )

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Do the task alone, perhaps in clearer words, or form a nested team if the agent may and one is found."""
        self.tally.decisions["approach"] += 1
        state = task.group.state
        may_team_up = task.me.may_team_up and state.depth < state.limits.max_depth
        try:
            shape = answers.approach(self._budget, may_team_up=may_team_up)
            prompt = self._approach_prompt(task, may_team_up)
            decision = await self._dialogue.decide(self._system(task.me), prompt, shape, task.group.meter)
        except NoUsableAnswer as failure:
            self._fell_back("approach", failure, task.group.meter)
            return await self._fallback.approach(task, tools)
        if isinstance(decision, answers.DoAlone):
            return Alone(task_desc=decision.task_desc or task.spec.task_desc)
        mission = Mission(
            text=task.spec.task_desc,
            inputs=task.group.charter.inputs,
            me=task.me,
            depth=state.depth + 1,
            meter=task.group.meter,
        )
        team = await self.form_team(mission, tools)
        return team if isinstance(team, Team) and team.members else Alone(task_desc=task.spec.task_desc)

    async def _speech(self, view: GroupView) -> BaseModel:
        if len(view.refusals) > self._budget.repairs:
            raise NoUsableAnswer(Cause.REJECTED, view.refusals[-1])
        shape = answers.speech(view, view.legal, self._budget)
        if shape is None:
            raise NoUsableAnswer(Cause.NOTHING_LEGAL, f"legal: {', '.join(map(name_of, view.legal)) or 'nothing'}")
        echoed = context.repeated(view)
        if echoed and not view.refusals:  # else the turn has been counted
            repeated_messages.inc()
        prompt = self._prompts.fill(
            "speak",
            **self._situation(view),
            acts=context.acts(self._prompts, [name_of(kind) for kind in view.legal if kind in answers.SPEECH_KINDS]),
            team=context.team(view, self._budget),
            tasks=context.tasks(view, self._budget),
            refusals=context.refusals(view),
            repeated=self._prompts.fill("repeated", by="you" if echoed == view.me else echoed) if echoed else "",
            turn=view.state.turns_taken + 1,
            max_turns=view.state.limits.max_turns,
            me=view.me,
        )
        within = _share(view.state.limits.floor_timeout)
        return await self._dialogue.decide(self._system(_card(view)), prompt, shape, view.meter, within=within)

    def _approach_prompt(self, task: TaskView, may_team_up: bool) -> str:
        choices = f"There are two ways:\n{self._prompts.fill('approach_team')}" if may_team_up else "There is one way:"
        text = defused(clipped(task.spec.task_desc, self._budget.prompt_chars // 4))
        return self._prompts.fill(
            "approach",
            choices=choices,
            task=fenced("task", text, id=task.spec.task_id),
            goal=context.goal(task.group.charter.goal, self._budget),
            results=context.results(task.used, self._budget),
            messages=context.transcript(task.group.messages, self._budget.prompt_chars // 4),
        )

    def _situation(self, view: GroupView) -> dict[str, str]:
        return {
            "goal": context.goal(view.charter.goal, self._budget),
            "inputs": context.inputs(view.charter.inputs),
            "messages": context.transcript(view.messages, self._budget.prompt_chars // 3),
        }

    def _system(self, me: AgentCard) -> str:
        return self._prompts.fill("system", me=me.agent_id, about=context.agent_line(me, 600))

    def _fell_back(self, decision: Decision, failure: NoUsableAnswer, meter: Meter) -> None:
        meter.add(Usage(fallbacks=1))
        self.tally.fell_back(decision, failure.cause, failure.why)


def _card(view: GroupView) -> AgentCard:
    return next(card for card in view.charter.team_members if card.agent_id == view.me)


def _share(limit: timedelta) -> timedelta:
    return limit * _SHARE_OF_THE_FLOOR
