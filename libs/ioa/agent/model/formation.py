"""Team formation: a loop of two tools, at most ten calls, then a launch with what was found (paper, appendix A.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ioa.agent.model import context
from ioa.agent.model.answers import Formation, LaunchGroupChat, ReportNobodyFits, SearchClient
from ioa.agent.model.budget import Budget
from ioa.agent.model.dialogue import DecisionPrompt, Dialogue
from ioa.agent.model.prompts import Prompts, line_of
from ioa.errors import ForbiddenError
from ioa.fences import fenced
from ioa.group.state import MAX_MEMBERS
from ioa.ports.brain import Contact, Mission, NobodyFits, TeamLaunch, TeamTools
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import MAX_NEED_CHARS, MAX_NEEDS, Hit, Need, NeedHits, SearchResult
from ioa.repetition import normalised

_SITS_OUT = timedelta(seconds=30)
"""How long a model that is away is asked again; after that another agent may take the goal."""
_MAX_CONTACTS = 10
_MAX_NEED_BYTES = 600
_LEAST_LINE_BYTES = 120
_MOST_LINE_BYTES = 3_000


@dataclass
class Findings:
    """What the searches of one mission have brought, need by need."""

    found: list[NeedHits] = field(default_factory=list)

    @property
    def needs(self) -> list[str]:
        """What was searched."""
        return [hits.need.text for hits in self.found]

    @property
    def cards(self) -> dict[AgentId, AgentCard]:
        """Who was found, in order."""
        return {hit.card.agent_id: hit.card for hits in self.found for hit in hits.hits}

    def add(self, result: SearchResult) -> None:
        """Take in what one search found."""
        self.found += result.by_need

    def team(self, members: Sequence[str], me: AgentId) -> TeamLaunch:
        """Return the team of these agents without their owner, who belongs to it unnamed."""
        found = [agent for agent in self.cards if agent in set(members) and agent != me]
        return TeamLaunch(members=tuple(found[: MAX_MEMBERS - 1]))

    def best_team(self, me: AgentId) -> TeamLaunch:
        """Return the team of the best hit for each need."""
        return self.team([hits.hits[0].card.agent_id for hits in self.found if hits.hits], me)

    def nearest(self) -> str:
        """Who came nearest to each need, in whole sentences."""
        best = [(hits.need.text, max(hits.hits, key=lambda hit: hit.similarity)) for hits in self.found if hits.hits]
        return " ".join(
            f"Nearest to “{need}” is {hit.card.agent_id} (similarity {hit.similarity:.2f}), "
            f"which does such as “{hit.matched_example or hit.card.description}”."
            for need, hit in best
        )


class TeamFormation:
    """Let the model search and launch."""

    def __init__(self, dialogue: Dialogue, prompts: Prompts, budget: Budget) -> None:
        self._dialogue = dialogue
        self._prompts = prompts
        self._budget = budget

    async def form(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Form a team for the mission.

        The mission's own words are searched first. After that the model may launch, search on, or say that nobody fits, with what
        is needed and why; nobody's being near is for it to judge. If it said so a moment ago, it is asked anew only where the same
        searches find others than they did then.

        Raises:
            NoUsableAnswer: The model failed before it launched.
            UnavailableError: Discovery does not answer.
        """
        findings, contacts = Findings(), await tools.contacts()
        before = mission.before
        searched = before.searched if before else ()
        may_search = await self._search(searched or [mission.text.strip()[:MAX_NEED_CHARS]], tools, findings)
        if before and searched and before.found == findings.cards.keys():
            return before
        for call in range(1, self._budget.calls):
            may_search = may_search and call < self._budget.calls - 1
            step = await self._step(mission, contacts, findings, self._budget.calls - call, may_search=may_search)
            match step.decision:
                case LaunchGroupChat(members=members):
                    return findings.team(members, mission.me.agent_id)
                case SearchClient(needs=needs):
                    may_search = await self._search([need.strip() for need in needs], tools, findings)
                case ReportNobodyFits() as report:
                    return _nobody(report, mission, findings)
        return findings.best_team(mission.me.agent_id)

    async def _step(
        self, mission: Mission, contacts: Sequence[Contact], findings: Findings, calls_left: int, *, may_search: bool
    ) -> Formation:
        def messages(room: int) -> list[ChatMessage]:
            return [ChatMessage("user", self._prompt(mission, contacts, findings, calls_left, room, may_search=may_search))]

        def objection(said: Formation) -> str | None:
            return _objection(said, findings, may_search=may_search)

        about = (mission.me.agent_id, mission.text)
        rules = self._prompts.fill("system_forming")
        question = DecisionPrompt(messages, mission.meter, rules, sits_out=_SITS_OUT, about=about, purpose="form")
        return await self._dialogue.decide(question, Formation, objection)

    async def _search(self, wanted: Sequence[str], tools: TeamTools, findings: Findings) -> bool:
        """Search for what has not been searched yet; False when no search is left."""
        known = set(map(normalised, findings.needs))
        needs = [text for text in wanted if normalised(text) not in known]
        try:
            findings.add(await tools.search_client([Need(text=text, k=self._budget.hits) for text in needs]))
        except ForbiddenError:
            return False
        return True

    def _prompt(
        self, mission: Mission, contacts: Sequence[Contact], findings: Findings, calls_left: int, room: int, *, may_search: bool
    ) -> str:
        known = [
            f"{contact.card.agent_id}: {contact.tasks_done} of {contact.tasks_done + contact.tasks_failed} tasks done for you"
            for contact in contacts[:_MAX_CONTACTS]
        ]
        share = min(_MOST_LINE_BYTES, max(_LEAST_LINE_BYTES, room // max(1, len(findings.cards))))
        return self._prompts.fill(
            "form_team",
            me=mission.me.agent_id,
            about=context.agent_line(mission.me, _MOST_LINE_BYTES),
            calls=self._budget.calls,
            calls_left=calls_left,
            goal=context.goal(mission.text, room // 2),
            inputs=context.inputs(mission.inputs),
            contacts=fenced("contacts", "\n".join(known)),
            found=fenced("found", "\n".join(found_lines(findings, share, mission))),
            closed="" if may_search else "The searches are used up: launch, or report that no agent fits.",
        )


def _objection(said: Formation, findings: Findings, *, may_search: bool) -> str | None:
    """Return the reason why a step is not possible; None if it is."""
    match said.decision:
        case SearchClient(needs=needs):
            return _fault_of_needs([need.strip() for need in needs], findings.needs, may_search=may_search)
        case LaunchGroupChat(members=members):
            if unknown := [member for member in members if member not in findings.cards]:
                return f"{', '.join(unknown)} was not found; found were {', '.join(findings.cards) or 'no agents yet'}."
            if len(set(members)) >= MAX_MEMBERS:
                return f"a group has at most {MAX_MEMBERS - 1} members besides you; choose the most important."
        case _:
            pass
    return None


def _fault_of_needs(needs: Sequence[str], searched: Sequence[str], *, may_search: bool) -> str | None:
    if not may_search:
        return "the searches are used up; launch with agents that were found, or report that no agent fits."
    if not needs or not all(needs) or any(len(need) > MAX_NEED_CHARS for need in needs) or len(needs) > MAX_NEEDS:
        return f"`needs` contains 1 to {MAX_NEEDS} sentences of at most {MAX_NEED_CHARS:,} characters."
    known = set(map(normalised, searched))
    if all(normalised(need) in known for need in needs):
        return "these needs were searched already; search in other words, launch, or report that no agent fits."
    return None


def found_lines(findings: Findings, share: int, mission: Mission) -> list[str]:
    """Return the hits by need, the best first; an agent is described where it stands first, and the goal is above."""
    lines: list[str] = []
    described = {mission.me.agent_id}
    for hits in findings.found:
        is_goal = hits.need.text == mission.text.strip()
        need = "(the goal)" if is_goal else line_of(hits.need.text, _MAX_NEED_BYTES)
        told = [_hit(hit, share, mission.me.agent_id, is_new=hit.card.agent_id not in described) for hit in hits.hits]
        described |= {hit.card.agent_id for hit in hits.hits}
        lines += ["<need>", need, "</need>", *(told or ["nobody"])]
    return lines


def _hit(hit: Hit, share: int, me: AgentId, *, is_new: bool) -> str:
    record, load = hit.record, hit.load
    about = context.agent_line(hit.card, share, hit.matched_example) if is_new else f"{hit.card.agent_id}: see above"
    matched = f"“{line_of(hit.matched_example, share)}”" if hit.matched_example else ""
    facts = ["this is you"] if hit.card.agent_id == me else []
    facts += [f"similarity {hit.similarity:.2f}{' to the first example' if matched and matched in about else ''}"]
    facts += [f"matched {matched}"] if matched and matched not in about else []
    facts += [f"succeeded in {record.done} of {record.done + record.failed} groups"] if record.done + record.failed else []
    facts += [f"busy {load.tasks} of {load.slots}"] if load.tasks else []
    facts += ["offline"] if not hit.online else []
    return f"{about}\n  {' · '.join(facts)}"


def _nobody(report: ReportNobodyFits, mission: Mission, findings: Findings) -> NobodyFits:
    needs = tuple(filter(None, (need.strip() for need in report.needs))) or (mission.text[:500],)
    why = report.why.strip()
    sentence = f"{why}{'' if why.endswith(('.', '!', '?', '。')) else '.'}" if why else ""
    nearest = " ".join(filter(None, (sentence, findings.nearest())))
    return NobodyFits(needs, nearest, searched=tuple(findings.needs[:MAX_NEEDS]), found=frozenset(findings.cards))
