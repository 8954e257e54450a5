"""Team formation by a model: a search loop and a launch (paper, appendix A.2.3), and plans of teams (AIEvo's automatic SOP)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ioa.agent.model import turn_prompt
from ioa.agent.model.answers import Formation, LaunchGroupChat, NoPolicy, Planning, ReportNobodyFits, SearchClient
from ioa.agent.model.dialogue import Adviser, Dialogue
from ioa.agent.model.prompt_templates import below, fill, line_of
from ioa.errors import InvalidInputError
from ioa.foreign_text import fenced
from ioa.ports.brain_types import Contact, Mission, NobodyFits, TeamLaunch, TeamTools
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.agents.search import MAX_NEED_CHARS, Hit, Need, NeedHits
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.setup.charter import MAX_MEMBERS
from ioa.protocol.teams.team_file import MAX_GOAL_CHARS, TeamSpec, read_toml

PATIENCE = timedelta(seconds=30)
"""Maximum time in which an unavailable model is asked again; after that another agent can take the goal."""
_MAX_CALLS = 10
"""Maximum calls of tools for one mission, with the search of its own words."""
_CLOSED = "The searches are used up: launch, or report that no agent fits."
_MAX_CONTACTS = 10
_MAX_NEED_BYTES = 600
_MAX_SHOWN_CHARS = 500


@dataclass
class Findings:
    """The hits of the searches for one mission."""

    mission: Mission
    tools: TeamTools
    found: list[NeedHits] = field(default_factory=list)

    @property
    def cards(self) -> dict[AgentId, AgentCard]:
        """The agents that were found, in order."""
        return {hit.card.agent_id: hit.card for hits in self.found for hit in hits.hits}

    async def search(self, needs: Iterable[str]) -> None:
        """Search for agents, and add the hits."""
        self.found += (await self.tools.search_client([Need(text=text) for text in needs])).by_need

    def lines(self, room: int) -> str:
        """Return the hits of each need, best first; an agent is described at its first place."""
        lines, described, me = list[str](), {self.mission.me.agent_id}, self.mission.me.agent_id
        share = turn_prompt.bytes_per_agent(room, len(self.cards))
        for hits in self.found:
            is_goal = hits.need.text == self.mission.text.strip()
            lines += ["<need>", "(the goal)" if is_goal else line_of(hits.need.text, _MAX_NEED_BYTES), "</need>"]
            lines += [_hit(hit, share, me, is_new=hit.card.agent_id not in described) for hit in hits.hits] or ["nobody"]
            described |= {hit.card.agent_id for hit in hits.hits}
        return fenced("found", "\n".join(lines))


async def form_team(mission: Mission, tools: TeamTools, adviser: Adviser) -> TeamLaunch | NobodyFits:
    """Form a team for a mission.

    The mission's own words are searched first.

    Raises:
        NoUsableAnswerError: The model failed before it launched.
        UnavailableError: Discovery does not answer.
    """
    findings, contacts = Findings(mission, tools), await tools.contacts()
    await findings.search([mission.text.strip()[:MAX_NEED_CHARS]])
    calls_left = _MAX_CALLS - 1
    while isinstance(step := await _next_step(findings, contacts, calls_left, adviser), SearchClient):
        await findings.search(step.needs)
        calls_left -= 1
    if isinstance(step, ReportNobodyFits):
        needs = tuple(filter(None, map(str.strip, step.needs))) or (mission.text[:_MAX_SHOWN_CHARS],)
        return NobodyFits(needs, step.why.strip())
    found = [one for one in findings.cards if one in step.members and one != mission.me.agent_id]
    return TeamLaunch(tuple(found[: MAX_MEMBERS - 1]))


async def _next_step(
    findings: Findings, contacts: Sequence[Contact], calls_left: int, adviser: Adviser
) -> SearchClient | LaunchGroupChat | ReportNobodyFits:
    mission, may_search = findings.mission, calls_left > 1
    known = [
        f"{contact.card.agent_id}: {contact.tasks_done} of {contact.tasks_done + contact.tasks_failed} tasks done for you"
        for contact in contacts[:_MAX_CONTACTS]
    ]

    def messages(room: int) -> list[ChatMessage]:
        text = below(
            f"You are {mission.me.agent_id}:",
            fenced("agent", turn_prompt.agent_line(mission.me)),
            turn_prompt.goal(mission.text, room // 2),
            turn_prompt.inputs(mission.inputs),
            fenced("contacts", "\n".join(known)),
            findings.lines(room),
            "" if may_search else _CLOSED,
            f"{calls_left} of {_MAX_CALLS} steps are left. Decide on the next one.",
        )
        return [ChatMessage("user", text)]

    async def build(said: Formation) -> SearchClient | LaunchGroupChat | ReportNobodyFits:
        match said.decision:
            case SearchClient() if not may_search:
                raise InvalidInputError(_CLOSED)
            case LaunchGroupChat(members=members) if unknown := [one for one in members if one not in findings.cards]:
                there = ", ".join(findings.cards) or "no agents yet"
                raise InvalidInputError(f"{', '.join(unknown)} was not found; found were {there}.")
        return said.decision

    about = (mission.me.agent_id, mission.text)
    dialogue = Dialogue(adviser, "form", fill("system_forming"), messages, mission.meter, about, patience=PATIENCE)
    return await dialogue.decide(Formation, build)


def _hit(hit: Hit, share: int, me: AgentId, *, is_new: bool) -> str:
    record, load = hit.record, hit.load
    about = turn_prompt.agent_line(hit.card, share) if is_new else f"{hit.card.agent_id}: see above"
    matched = f"“{line_of(hit.matched_example, share)}”" if hit.matched_example else ""
    facts = ["this is you"] if hit.card.agent_id == me else []
    facts += [f"similarity {hit.similarity:.2f}"]
    facts += [f"matched {matched}"] if matched and matched not in about else []
    facts += [f"succeeded in {record.done} of {record.done + record.failed} groups"] if record.done + record.failed else []
    facts += [f"busy {load.tasks} of {load.slots}"] if load.tasks else []
    facts += ["offline"] if not hit.online else []
    return f"{about}\n  {' · '.join(facts)}"


async def plan_team(mission: Mission, tools: TeamTools, adviser: Adviser) -> TeamSpec | None:
    """Let the model write a team file, which the checker of team files judges; None if the goal needs no policy.

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
