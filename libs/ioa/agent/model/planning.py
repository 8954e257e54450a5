"""Planning a team with a policy (AIEvo's automatic SOP): a model writes a team file, which the checker of team files judges."""

from __future__ import annotations

from ioa.agent.model import turn_prompt
from ioa.agent.model.answers import NoPolicy, Planning
from ioa.agent.model.dialogue import Adviser, Dialogue
from ioa.agent.model.formation import Findings
from ioa.agent.model.prompt_templates import below, fill
from ioa.ports.brain import Mission, TeamTools
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.agents.search import MAX_NEED_CHARS
from ioa.protocol.teams.team_file import MAX_GOAL_CHARS, TeamSpec, read_toml


async def plan_team(mission: Mission, tools: TeamTools, adviser: Adviser) -> TeamSpec | None:
    """Plan a team for a goal; None if the goal needs no policy.

    Raises:
        NoUsableAnswerError: The model failed, or its plans are wrong.
        UnavailableError: Discovery does not answer.
    """
    findings = Findings(mission, tools)
    await findings.search([mission.text.strip()[:MAX_NEED_CHARS]])

    def messages(room: int) -> list[ChatMessage]:
        goal, inputs = turn_prompt.goal(mission.text, room // 2), turn_prompt.inputs(mission.inputs)
        return [ChatMessage("user", below(goal, inputs, findings.lines(room), "Plan the team that reaches this goal."))]

    async def build(said: Planning) -> TeamSpec | None:
        if isinstance(said.decision, NoPolicy):
            return None
        return read_toml(said.decision.file).model_copy(update={"goal": mission.text[:MAX_GOAL_CHARS]})

    about = (mission.me.agent_id, mission.text)
    return await Dialogue(adviser, "plan", fill("system_planning"), messages, mission.meter, about).decide(Planning, build)
