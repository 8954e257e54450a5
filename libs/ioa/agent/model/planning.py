"""Planning a team with a policy (AIEvo's automatic SOP): the model draws it, and the checker of team files says what is wrong.

Nothing that the checker refuses is ever used: its sentences are what the model is told to mend. A plan knows no watchers and no
secrecy, which somebody has to want; the file that comes of it is a team file like any other.
"""

from __future__ import annotations

import re
from typing import Any

from ioa.agent.model import context
from ioa.agent.model.answers import NoPolicy, PlannedExit, PlannedNode, PlannedTeam, Planning
from ioa.agent.model.budget import Budget
from ioa.agent.model.dialogue import DecisionPrompt, Dialogue
from ioa.agent.model.formation import Findings, found_lines
from ioa.agent.model.prompts import Prompts
from ioa.fences import fenced
from ioa.ports.brain import Mission, TeamTools
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.search import MAX_NEED_CHARS, Need
from ioa.protocol.team import MAX_GOAL_CHARS, TeamError, TeamSpec, team_of

_LEAST_LINE_BYTES, _MOST_LINE_BYTES = 120, 3_000
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_MAX_TOLD = 8
"""How many of the checker's findings the model is told at once."""


class TeamPlanning:
    """Let the model draw a team until the checker takes it."""

    def __init__(self, dialogue: Dialogue, prompts: Prompts, budget: Budget) -> None:
        self._dialogue = dialogue
        self._prompts = prompts
        self._budget = budget

    async def plan(self, mission: Mission, tools: TeamTools) -> TeamSpec | None:
        """Plan a team for a goal; None if the model says that it needs no policy.

        Raises:
            NoUsableAnswer: The model failed, or no plan of it was one.
            UnavailableError: Discovery does not answer.
        """
        findings = Findings()
        findings.add(await tools.search_client([Need(text=mission.text.strip()[:MAX_NEED_CHARS], k=self._budget.hits)]))

        def messages(room: int) -> list[ChatMessage]:
            share = min(_MOST_LINE_BYTES, max(_LEAST_LINE_BYTES, room // max(1, len(findings.cards))))
            text = self._prompts.fill(
                "plan",
                goal=context.goal(mission.text, room // 2),
                inputs=context.inputs(mission.inputs),
                found=fenced("found", "\n".join(found_lines(findings, share, mission))),
            )
            return [ChatMessage("user", text)]

        about = (mission.me.agent_id, mission.text)
        question = DecisionPrompt(messages, mission.meter, self._prompts.fill("system_planning"), about=about, purpose="plan")
        said = await self._dialogue.decide(question, Planning, lambda said: objection_to_plan(said, mission.text))
        return None if isinstance(said.decision, NoPolicy) else team_of(document_of_plan(said.decision, mission.text))


def objection_to_plan(said: Planning, goal: str) -> str | None:
    """Say what is wrong with a plan, in the checker's sentences; None if nothing is."""
    if isinstance(said.decision, NoPolicy):
        return None
    try:
        team_of(document_of_plan(said.decision, goal))
    except TeamError as error:
        return "; ".join(map(str, error.findings[:_MAX_TOLD])) + "."
    return None


def document_of_plan(plan: PlannedTeam, goal: str) -> dict[str, Any]:
    """Write a plan in the form of a team file, whatever is wrong with it."""
    roles = {role.name: {"need": role.need, **_given(prompt=role.prompt), "count": role.count} for role in plan.roles}
    return {
        "team": plan.name,
        "goal": goal[:MAX_GOAL_CHARS],
        "leader": plan.leader,
        "roles": roles,
        "nodes": [_node(node) for node in plan.nodes],
    }


def _node(node: PlannedNode) -> dict[str, Any]:
    form = {field.name: field.answer for field in node.form}
    told = _given(prompt=node.prompt, max=node.max, visits=node.visits, form=form)
    told |= {"tasks": True} if node.tasks else {}
    told |= _given(exits=[_exit(way, form) for way in node.exits])
    return {"name": node.name, "roles": node.roles, "turns": node.turns, **told}


def _exit(way: PlannedExit, form: dict[str, str]) -> dict[str, Any]:
    when = _given(field=way.field, equals=_value(way.equals, form.get(way.field, "")))
    return {"to": way.to, **_given(by=way.by, when=when)}


def _value(written: str, answer: str) -> object:
    """Read what a field is compared with, as the field holds it."""
    plain = written.strip().lower()
    match answer.removesuffix("?"):
        case "yes/no":
            return {"yes": True, "true": True, "no": False, "false": False}.get(plain, written)
        case "text" | "member" | "":
            return written
        case kind if "|" not in kind and _NUMBER.fullmatch(plain):
            return int(plain)
        case _:
            return written


def _given(**told: object) -> dict[str, Any]:
    """Leave out what a plan does not say."""
    return {name: value for name, value in told.items() if value not in (None, "", [], {})}
