"""The rule brain: a Markdown list is the plan; any other goal is one task for the agent that fits best."""

from __future__ import annotations

from ioa.agent.brain_port import TaskView
from ioa.agent.rules.conclusion import conclude, conclude_policy, concluded_items, example_lines
from ioa.agent.rules.list_plan import ListItem, parse_list
from ioa.agent.rules.matching import build_team, match_agents
from ioa.agent.rules.progress import next_utterance
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.state import Gathering
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch, TeamTools, Utterance
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.messages import Conclusion, Pass, PassCause

_RULES = DecidedBy(kind="rules")


class RuleBrain:
    """Coordinate agents without a language model. It stores nothing."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Search the agents for each task of a goal.

        Raises:
            InvalidInputError: The goal is a list with a wrong reference.
            UnavailableError: Discovery does not answer.
        """
        mission.meter.decided_by = _RULES
        introduction, items = parse_list(mission.text)
        if introduction or not items:
            items = (ListItem(mission.text),)
        matches = await match_agents(items, tools)
        unserved = [match for match in matches if not match.agents]
        if not unserved:
            return build_team(matches, mission.me.agent_id)
        nearest = [card for match in unserved for card in match.found]
        return NobodyFits(tuple(match.item.text for match in unserved), "\n".join(example_lines(nearest)))

    async def speak(self, view: TurnView) -> Utterance:
        """Assign the tasks that are ready, wait for the open ones, or conclude; questions to several members are passed."""
        view.meter.decided_by = _RULES
        if isinstance(view.state.stage, Gathering):
            return Pass(cause=PassCause.NOTHING_TO_ADD)
        return next_utterance(view)

    async def conclude(self, view: TurnView) -> Conclusion:
        """Merge the results in the plan's order; under a policy, repeat the last words."""
        view.meter.decided_by = _RULES
        if view.part is not None:
            return conclude_policy(view)
        items = concluded_items(view)
        missing = [item for item in items if not item.done]
        asked = dict.fromkeys(task.spec.assignee for item in missing for task in item.attempts)
        cards = {card.agent_id: card for card in view.charter.team_members}
        return conclude(view, items, example_lines([cards[agent] for agent in asked if agent in cards]))

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Open a nested group for the list within a task; its results are the task's result.

        The agent does the task alone unless it may open groups and an example on its card has a list with the same introduction:
        another introduction can limit the tasks, and nothing here reads it.
        """
        task.group.meter.decided_by = _RULES
        charter = task.group.charter
        if not task.me.may_team_up or task.spec.uses or charter.team_up_depth >= charter.limits.max_depth:
            return None
        try:
            introduction, items = _introduced_list(task.spec.task_desc)
            known = [_introduced_list(example) for example in task.me.examples]
            if not items or all(introduction != other or not listed for other, listed in known):
                return None
            matches = await match_agents(items, tools)
        except (InvalidInputError, UnavailableError):
            return None
        me = task.me.agent_id
        others = [match._replace(agents=[card for card in match.agents if card.agent_id != me]) for match in matches]
        return build_team(others, me) if all(match.agents for match in others) else None


def _introduced_list(text: str) -> tuple[str, tuple[ListItem, ...]]:
    introduction, items = parse_list(text)
    return introduction.rstrip(": ").casefold(), items
