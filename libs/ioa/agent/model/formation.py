"""Team formation: a loop of two tools, at most ten calls, then a launch with what was found (paper, appendix A.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ioa.agent.model import answers, context
from ioa.agent.model.budget import Budget
from ioa.agent.model.dialogue import Dialogue
from ioa.agent.model.prompts import Prompts, clipped, defused, fenced
from ioa.errors import ForbiddenError
from ioa.group.state import MAX_MEMBERS
from ioa.ports.brain import Contact, Mission, NobodyFits, Team, TeamTools
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import MAX_NEED_CHARS, Need, SearchResult
from ioa.repetition import normalised


@dataclass
class Findings:
    """What the searches of one mission have brought."""

    needs: list[str] = field(default_factory=list)
    cards: dict[AgentId, AgentCard] = field(default_factory=dict)
    best: list[AgentId] = field(default_factory=list)
    unserved: list[str] = field(default_factory=list)

    def add(self, result: SearchResult, weak_similarity: float) -> None:
        """Take in what one search found; a need whose best hit is no closer than `weak_similarity` counts as unserved."""
        for hits in result.by_need:
            self.needs.append(hits.need.text)
            if max((hit.similarity for hit in hits.hits), default=-1.0) <= weak_similarity:
                self.unserved.append(hits.need.text)
            self.cards |= {hit.card.agent_id: hit.card for hit in hits.hits}
            if hits.hits and hits.hits[0].card.agent_id not in self.best:
                self.best.append(hits.hits[0].card.agent_id)

    def team(self, members: Sequence[str], me: AgentId) -> Team:
        """Return the team of these agents without their owner, who belongs to it unnamed."""
        found = [agent for agent in self.cards if agent in set(members) and agent != me]
        return Team(members=tuple(found[: MAX_MEMBERS - 1]))

    def best_team(self, me: AgentId) -> Team:
        """Return the team of the best hit for each need."""
        return self.team(self.best, me)


class TeamFormation:
    """Let the model search and launch."""

    def __init__(self, dialogue: Dialogue, prompts: Prompts, budget: Budget) -> None:
        self._dialogue = dialogue
        self._prompts = prompts
        self._budget = budget

    async def form(self, system: str, mission: Mission, tools: TeamTools, findings: Findings) -> Team | NobodyFits:
        """Form a team for the mission; `findings` holds what the searches brought, even if this fails.

        The mission's own words are searched first. Only if they find nobody may the model give up: its own wording of a need can
        be too poor to find an agent that is there.

        Raises:
            NoUsableAnswer: The model failed before it launched.
            UnavailableError: Discovery does not answer.
        """
        contacts = await tools.contacts()
        may_search = await self._search([mission.text.strip()[:MAX_NEED_CHARS]], tools, findings)
        served = not findings.unserved
        for call in range(1, self._budget.calls):
            may_search = may_search and call < self._budget.calls - 1
            if not may_search and not findings.cards:
                break
            may_give_up = bool(findings.unserved) and not served
            shape = answers.formation(list(findings.cards), self._budget, may_search=may_search, may_give_up=may_give_up)
            prompt = self._prompt(mission, contacts, findings, self._budget.calls - call, may_give_up=may_give_up)
            match await self._dialogue.decide(system, prompt, shape, mission.meter):
                case answers.LaunchGroupChat(members=members):
                    return findings.team(members, mission.me.agent_id)
                case answers.SearchClient(needs=needs):
                    may_search = await self._search(needs, tools, findings)
                case _:
                    break
        if served:
            return findings.best_team(mission.me.agent_id)
        named = [need for need in findings.unserved if need != findings.needs[0]]
        return NobodyFits(needs=tuple(named) or (mission.text[:500],))

    async def _search(self, wanted: Sequence[str], tools: TeamTools, findings: Findings) -> bool:
        """Search for what has not been searched yet; False when searching more would bring nothing."""
        known = set(map(normalised, findings.needs))
        needs = [text for text in wanted if normalised(text) not in known]
        if not needs:
            return False
        try:
            findings.add(
                await tools.search_client([Need(text=text, k=self._budget.hits) for text in needs]), self._budget.weak_similarity
            )
        except ForbiddenError:
            return False
        return True

    def _prompt(
        self, mission: Mission, contacts: Sequence[Contact], findings: Findings, calls_left: int, *, may_give_up: bool
    ) -> str:
        known = [
            f"{context.agent_line(contact.card, 200)} ({contact.tasks_done} tasks done for you, {contact.tasks_failed} failed)"
            for contact in contacts[:10]
        ]
        share = max(80, self._budget.prompt_chars // 3 // max(1, len(findings.cards)))
        return self._prompts.fill(
            "form_team",
            calls=self._budget.calls,
            calls_left=calls_left,
            may_give_up=self._prompts.fill("form_team_give_up") if may_give_up else "",
            goal=context.goal(mission.text, self._budget),
            inputs=context.inputs(mission.inputs),
            contacts=fenced("contacts", "\n".join(known)),
            searches=fenced("searches", defused("\n".join(clipped(need, 200) for need in findings.needs))),
            found=fenced("found", "\n".join(context.agent_line(card, share) for card in findings.cards.values())),
        )
