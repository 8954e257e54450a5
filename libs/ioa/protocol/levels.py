"""Levels: which rules a group is held to.

A rule that changes what a group's state is, or what its members have to say, holds from a level on. A group has the least level of
those who take part when it is launched, and keeps it. So logs from before can be replayed, and agents of an older release join.
"""

from __future__ import annotations

LOST_MEMBERS_ARE_NAMED = 1
"""Who was lost only just now may be named next speaker or be given a task, and a conclusion says what it may lack."""

TASKS_ARE_FOLDED = 1
"""Closed tasks leave the state, and a task's id begins with its turn."""

CONCLUDED_AT_ONCE = 2
"""A conclusion may come with its announcement, and one that was forced may say that the goal was reached."""

TASKS_ARE_REJECTED = 2
"""A result that is not what was wanted may be rejected, with any message of the floor holder."""

TASKS_WAIT = 2
"""A task may use others that are not finished, and starts when they are done."""

FLOORS_ARE_PASSED = 2
"""Whoever has the floor may pass it on or keep it longer, members have patience of their own, and decisions are counted."""

POLICIES = 3
"""A group may be led by a policy."""

ASKS_AND_GATHERINGS = 4
"""Several members may speak side by side, forms are filled in, and a role may be asked to decide."""

RESERVES = 4
"""A floor is granted only if what the dearest turn took is left of the tokens, for each who is to speak."""

VISIBILITY = 5
"""Not all members of a group under a policy hear all: routers show each what it may see, and nothing else."""

REVIEWS = 6
"""Under a policy messages may be held to guards, and be reviewed before others hear them."""

MEMORIES = 6
"""A policy may say what a member is shown of what it has heard."""

WATCHERS = 6
"""Members may be asked after each message whether to step in."""

PEOPLE = 6
"""Members may be people, who are waited for and never lost."""

TASKS_HAVE_SHARES = 7
"""What a task is reported to have cost counts up to its share of the budget; one that cost more has failed."""

FORKS = 7
"""A node may be left by all of its ways, one after the other, and another one wait for all nodes that lead to it."""

BOARDS = 7
"""Messages under a policy write versions of named things."""

INVITES = 7
"""Who has the floor may have others join the group."""

QUESTIONS = 7
"""Who has the floor may ask the goal's user, or who gave out its group's task, and a running task may ask as well."""

TASKS_UNDER_POLICIES = 8
"""Under a policy who has the floor may give out tasks where a node lets it, and wait for them."""

COPIES = 8
"""A group may begin with what was copied from that of another goal."""

WORDS = 8
"""A policy may wait for what is said, and say what is shown in place of silence."""

NEWCOMERS = 8
"""Watchers may have others join, and so may who has the floor where not all hear all."""

HUBS_COME_BACK = 8
"""The hub has the floor again when nobody whom it has named is there any more."""

SECRETS_HOLD = 9
"""Neither the order in which members speak nor the time that they have tells who holds a secret role."""

TURNS_RUN_OUT = 9
"""Where all turns of a node are used up no condition holds by that, and a fork that is taken again begins each branch anew."""

STRIKES_ARE_BOUNDED = 9
"""Nodes are begun anew only as long as the state can tell what is struck in few words."""

TASKS_NAME_TEAMS = 10
"""A task may name a stored team, which serves it in its assignee's place."""

IDS_TELL_TURNS = 11
"""In which turn a closed task was given out is told by its id alone, once others have left the state."""

LEVEL = 11
"""The level of this release."""
