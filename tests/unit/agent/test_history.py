"""The history of a group in a member's process."""

from __future__ import annotations

import pytest

from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.turn_view import TurnView
from ioa.group.events import Said
from ioa.group.policy.visibility import view_for
from ioa.group.requests import SequencedEntry
from ioa.group.state import Gathering
from ioa.ports.brain_types import TaskRecord
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import Discussion, SyncTaskAssignment, TaskOutcome, TaskSpec
from ioa.protocol.teams.team_file import field_of
from tests.unit.agent.stories import folded, sequenced
from tests.unit.group.scenario import COMM, START, Scenario, launched
from tests.unit.group.test_policy import REVIEWED, Told, group
from tests.unit.group.test_visibility import entries


def contacts(story: Scenario) -> dict[str, tuple[int, int]]:
    """Return the numbers of tasks that each other member did and failed."""
    return {one.card.agent_id: (one.tasks_done, one.tasks_failed) for one in folded(story).contacts()}


_WORK = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:ada").finishes("t1-2")
_CHAIN = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:bob:t1-1", "t1-3:bob:t1-2").after(4).finishes("t1-1")
_TEAM = launched("ada", "bob").speaks("ada", SyncTaskAssignment(tasks=tuple(
    TaskSpec(task_id=TaskId(name), assignee=AgentId("bob"), task_desc="…", team=team)
    for name, team in (("t1-1", "debate"), ("t1-2", None))
)))  # fmt: skip


@pytest.mark.parametrize(
    ("story", "counted"),
    [
        (_WORK, {}),
        (_WORK.cancelled(), {}),
        (_CHAIN.after(2).fails("t1-2"), {"bob": (1, 1)}),
        (_TEAM.nests("t1-1").nested_ends("t1-1").finishes("t1-2"), {"bob": (1, 0)}),
    ],
    ids=["open and own tasks", "cancelled", "waiting task is cancelled", "task of a stored team"],
)
def test_contacts_count_finished_tasks_of_other_members(story: Scenario, counted: dict[str, tuple[int, int]]) -> None:
    """A task counts for its assignee only if the assignee began it and did it alone."""
    assert contacts(story) == counted


def test_a_passed_message_takes_the_place_of_its_draft() -> None:
    """The author's view contains it once, after the decision; a rejected draft stays."""
    story = Told(group(REVIEWED))
    for word in "says decides:reject says decides:pass again".split():
        story = story.word(word)
    history = folded(story.story)
    view = history.view(AgentId("ada"), START, Meter())
    assert [(message.header.turn, message.payload.type) for message in view.messages] == [
        (1, "DISCUSSION"), (2, "DECISION"), (4, "DECISION"), (5, "DISCUSSION")
    ]  # fmt: skip
    assert view.log == view.messages


def history_of(story: Scenario, agent: str) -> GroupHistory:
    """What a member of a group under a policy knows of it."""
    assert story.policy is not None
    history = GroupHistory(COMM)
    for seq, entry in enumerate(entries(story.log, story.policy), 1):
        view = view_for(story.policy, entry, AgentId(agent))
        history.apply(SequencedEntry(seq=seq, previous_seq=history.cursor, entry=view))
    return history


def seen(story: Scenario, agent: str) -> TurnView:
    """What a member of a group under a policy has seen of it."""
    return history_of(story, agent).view(AgentId(agent), START, Meter())


def board(story: Scenario, agent: str) -> list[tuple[str, int, str]]:
    """Return the board in a member's view."""
    return [(one.name, one.version, one.text) for one in seen(story, agent).board.values()]


def test_board_contains_only_received_versions() -> None:
    """With the version that this is to it; a version that was written where it hears nothing does not count."""
    plan = {"name": "x", "roles": ["a", "b"], "heard_by": "node", "writes": ["plot"], "max": 2, "then": "y"}
    story = group(plan, {"name": "y", "roles": ["b", "c"], "writes": ["plot", "notes"], "max": 3})
    story = story.speaks("ada", Discussion(content="A ring.", writes={"plot": ""}))
    story = story.speaks("bob", Discussion(content="Better so.", writes={"plot": "Two rings."}))
    assert [board(story, one) for one in ("ada", "eve")] == [[("plot", 2, "Two rings.")], []]
    story = story.speaks("bob", Discussion(content="Here.", writes={"plot": "Two rings, and a thief."}))
    story = story.speaks("eve", Discussion(content="A red one.", writes={"notes": ""}))
    assert board(story, "ada") == [("plot", 3, "Two rings, and a thief."), ("notes", 1, "A red one.")]
    assert board(story, "eve") == [("plot", 1, "Two rings, and a thief."), ("notes", 1, "A red one.")]


def test_restarted_member_finds_its_passed_draft() -> None:
    """It is in the history of its author and of no other member."""
    told = Told(group(REVIEWED)).word("says").word("decides:pass").story
    assert told.policy is not None
    histories = {agent: history_of(told, agent) for agent in ("ada", "bob")}
    offered = histories["ada"].view(AgentId("ada"), START, Meter()).offer
    assert offered is not None
    [first] = [event.message.payload for event in told.log if isinstance(event, Said) and event.message.header.turn == 1]
    assert histories["ada"].draft(AgentId("ada"), offered.again) == (1, first)
    others = histories["bob"].state
    assert others.course is not None and others.course.draft is None
    assert histories["bob"].messages() == []


def test_a_rejected_task_is_not_done() -> None:
    """It counts as failed among the contacts; the log keeps the result as it came."""
    story = launched("ada", "bob").after(5).assigns_and_waits("ada", "t1-1:bob").after(3).finishes("t1-1").after(9)
    history = folded(story.rejects("ada", "t1-1", to="bob"))
    [record], [contact] = history.tasks(), history.contacts()
    assert (record.outcome, record.conclusion, record.rejected) == (TaskOutcome.REJECTED, "done", "t1-1 is wrong")
    assert (contact.tasks_done, contact.tasks_failed) == (0, 1)
    assert [item.payload.type for item in history.view(AgentId("ada"), START, Meter()).log if not isinstance(item, TaskRecord)] == [
        "SYNC_TASK_ASSIGNMENT",
        "INFORM_TASK_RESULT",
        "DISCUSSION",
    ]


def test_answers_in_parallel_are_read_when_all_have_spoken() -> None:
    """In a free group a member that was asked sees neither the others' messages nor their votes before it has spoken."""
    asks = Discussion(content="Which?", next_speakers=(AgentId("bob"), AgentId("eve")), question=(field_of("tree", "oak|elm"),))
    asked = launched("ada", "bob", "eve").speaks("ada", asks)
    story = asked.speaks("eve", Discussion(content="Oak.", fields={"tree": "oak"}))
    history = folded(story)
    seen = []
    for agent in ("bob", "eve"):
        view = history.view(AgentId(agent), START, Meter())
        assert isinstance(view.state.stage, Gathering) and view.state.stage.votes is not None
        seen.append((len(view.messages), len(view.log), view.state.stage.votes.answered))
    assert seen == [(1, 1, 0), (2, 2, 1)]
    history.apply(sequenced(story.speaks("bob", Discussion(content="Elm.", fields={"tree": "elm"})))[-1])
    assert [message.header.sender for message in history.view(AgentId("bob"), START, Meter()).messages] == ["ada", "eve", "bob"]
