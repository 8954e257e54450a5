"""Planning a team with a policy (AIEvo's automatic SOP): the checker of team files judges the plan of a model.

Plans contain no watchers and no secrets: those are for authors to want. The result is a team file like any other.
"""

from __future__ import annotations

from typing import Any

from ioa.agent.model import context
from ioa.agent.model.answers import NoPolicy, PlannedExit, PlannedNode, PlannedTeam, Planning
from ioa.agent.model.dialogue import Adviser, Dialogue
from ioa.agent.model.formation import Findings
from ioa.agent.model.prompts import below, fill
from ioa.errors import InvalidInputError
from ioa.group.policy.forms import read_value
from ioa.ports.brain import Mission, TeamTools
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.agents.search import MAX_NEED_CHARS
from ioa.protocol.team import MAX_GOAL_CHARS, TeamError, TeamSpec, team_of

_MAX_FINDINGS = 8
"""Maximum findings of the checker in one repair."""


async def plan_team(mission: Mission, tools: TeamTools, adviser: Adviser) -> TeamSpec | None:
    """Plan a team for a goal; None if the goal needs no policy.

    Raises:
        NoUsableAnswer: The model failed, or its plans are wrong.
        UnavailableError: Discovery does not answer.
    """
    findings = Findings(mission, tools)
    await findings.search([mission.text.strip()[:MAX_NEED_CHARS]])

    def messages(room: int) -> list[ChatMessage]:
        goal, inputs = context.goal(mission.text, room // 2), context.inputs(mission.inputs)
        return [ChatMessage("user", below(goal, inputs, findings.lines(room), "Plan the team that reaches this goal."))]

    async def build(said: Planning) -> TeamSpec | None:
        if isinstance(said.decision, NoPolicy):
            return None
        try:
            return team_of(_document(said.decision, mission.text))
        except TeamError as error:
            raise InvalidInputError("; ".join(map(str, error.findings[:_MAX_FINDINGS])) + ".") from None

    about = (mission.me.agent_id, mission.text)
    return await Dialogue(adviser, "plan", fill("system_planning"), messages, mission.meter, about).decide(Planning, build)


def _document(plan: PlannedTeam, goal: str) -> dict[str, Any]:
    """Write a plan in the form of a team file, without a check."""
    roles = {role.name: _present(need=role.need, prompt=role.prompt, count=role.count) for role in plan.roles}
    nodes = [_node(node) for node in plan.nodes]
    return {"team": plan.name, "goal": goal[:MAX_GOAL_CHARS], "leader": plan.leader, "roles": roles, "nodes": nodes}


def _node(node: PlannedNode) -> dict[str, Any]:
    form = {field.name: field.answer for field in node.form}
    exits = [_exit(way, form) for way in node.exits]
    about = node.model_dump(include={"name", "roles", "turns", "prompt", "max", "visits", "tasks"})
    return _present(**about, form=form, exits=exits)


def _exit(way: PlannedExit, form: dict[str, str]) -> dict[str, Any]:
    kind = form.get(way.field, "text").removesuffix("?")
    is_text = kind in ("text", "member") or "|" in kind
    value = read_value("yes_no" if kind == "yes/no" else "text" if is_text else "number", way.equals)
    return _present(to=way.to, by=way.by, when=_present(field=way.field, equals=value))


def _present(**fields: object) -> dict[str, Any]:
    """Leave out the fields that a plan does not state; 0 and False are stated."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
