"""The least a brain can do and still keep to the protocol."""

from __future__ import annotations

from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, TeamLaunch, TeamTools, Utterance
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Pause
from ioa.protocol.search import Need


class CurtBrain:
    """Wait for what is open, then conclude; work alone. False in that it assigns nothing and never discusses."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Search once, for the mission's own words, and take everybody who is found."""
        need = Need(text=mission.text[:4_000])
        found = await tools.search_client([need])
        others = tuple(hit.card.agent_id for hit in found.merged if hit.card.agent_id != mission.me.agent_id)
        return TeamLaunch(members=others) if found.merged else NobodyFits(needs=(need.text,))

    async def speak(self, view: GroupView) -> Utterance:
        """Pause on the open tasks, or announce the conclusion if there are none."""
        if Pause in view.legal:
            return Pause(triggers=tuple(task.task_id for task in view.state.open_tasks)[:256])
        return ConcludeGroupDiscussion()

    async def conclude(self, view: GroupView) -> Conclusion:
        """Join what the tasks came to."""
        return Conclusion(content="\n".join(task.conclusion for task in view.tasks if task.conclusion)[:100_000])

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | TeamLaunch:
        """Do the task alone, in its own words."""
        return Alone(task_desc=task.spec.task_desc)
