"""Names for the author of a brain: `Agent(…, brain=MyBrain())` lets it decide all messages of the agent.

A brain forms teams, speaks, concludes and takes on tasks; see `Brain`. A brain with `Decides` also chooses options of a policy.
The view of a turn is a `TurnView`, which builds the messages; the router checks each of them.
"""

from ioa.agent.brain_port import Brain, Decides, TaskView
from ioa.agent.turn_view import Said
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch, TeamTools, WholeConclusion

__all__ = [
    "Brain",
    "Decides",
    "Mission",
    "NobodyFits",
    "Said",
    "TaskView",
    "TeamLaunch",
    "TeamTools",
    "WholeConclusion",
]
