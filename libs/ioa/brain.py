"""What an author needs who writes a brain: `Agent(…, brain=MyBrain())` lets it decide all that is said in the agent's name.

A brain forms teams, speaks, concludes and takes on tasks; `Brain` says by which methods. One that `Decides` also chooses where a
policy asks its agent to. It performs nothing, and the router checks whatever it says.
"""

from ioa.agent.hooks import Said
from ioa.ports.brain import (
    Alone,
    Brain,
    Contact,
    Decides,
    GroupView,
    Mission,
    NobodyFits,
    Plans,
    TaskRecord,
    TaskView,
    TeamLaunch,
    TeamTools,
    Utterance,
    WholeConclusion,
)
from ioa.protocol.goals import Reason
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.search import Need, SearchResult
from ioa.protocol.team import TeamSpec

__all__ = [
    "Alone",
    "AsyncTaskAssignment",
    "Brain",
    "ConcludeGroupDiscussion",
    "Conclusion",
    "Contact",
    "Decides",
    "Decision",
    "Discussion",
    "GroupView",
    "Mission",
    "Need",
    "NobodyFits",
    "Pause",
    "Plans",
    "Reason",
    "Said",
    "SearchResult",
    "SyncTaskAssignment",
    "TaskOutcome",
    "TaskRecord",
    "TaskSpec",
    "TaskView",
    "TeamLaunch",
    "TeamSpec",
    "TeamTools",
    "Utterance",
    "WholeConclusion",
]
