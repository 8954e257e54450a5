"""Turns, tokens and money: counted exactly, lent to nested teams, and held whatever runs side by side."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioa.group.budget import spent_budget
from ioa.group.effects import PublishResult, ReportToParent
from ioa.group.events import GroupLaunched, SubgroupOpened
from ioa.group.machine import step
from ioa.group.state import ClosedTask, Concluding, Loan, ParentTask
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
)
from ioa.protocol.usage import MICROS, NOTHING, Usage
from tests.unit.group.scenario import COMM, MAX_TOKENS, START, WELL, Scenario, charter, launched, limits, specs
from tests.unit.group.tree import Tree

DEAREST = 6
"""The most tokens that one message of a tree costs."""


def _tasked(*tasks: str, max_turns: int = 9) -> Scenario:
    return launched("ada", "bob", "eve", max_turns=max_turns).assigns("ada", *(tasks or ("t1-1:bob",)))


def _reason(story: Scenario) -> Reason:
    (effect,) = story.effects
    assert isinstance(effect, PublishResult)
    return effect.result.reason


def test_the_message_that_spends_the_last_token_stands() -> None:
    """It is in the record and counts its turn; then only a conclusion is legal, and its reason is the budget."""
    story = launched("ada", "bob").says("ada", to="bob", tokens=MAX_TOKENS // 2).says("bob", to="ada", tokens=MAX_TOKENS // 2 + 4)
    assert (story.phase, story.holder, story.state.turns_taken, story.state.spent.tokens) == (
        Phase.CONCLUDING,
        "ada",
        2,
        MAX_TOKENS + 4,
    )
    assert _reason(story.concludes("ada", Reason.FAILED)) is Reason.BUDGET


@pytest.mark.parametrize(("tokens", "phase"), [(MAX_TOKENS // 2, Phase.DISCUSSING), (MAX_TOKENS // 2 + 1, Phase.CONCLUDING)])
def test_a_turn_that_may_cost_more_than_is_left_is_not_started(tokens: int, phase: Phase) -> None:
    """What the dearest turn took is reserved for the next one."""
    assert launched("ada", "bob").says("ada", to="bob", tokens=tokens).phase is phase


@pytest.mark.parametrize(("tokens", "phase"), [(MAX_TOKENS // 3, Phase.GATHERING), (MAX_TOKENS // 3 + 1, Phase.CONCLUDING)])
def test_a_reserve_is_for_each_who_speaks_side_by_side(tokens: int, phase: Phase) -> None:
    """None of them is let speak on the account of another."""
    both = Discussion(content="Well?", next_speakers=(AgentId("bob"), AgentId("eve")))
    assert launched("ada", "bob", "eve").speaks("ada", both, usage=Usage(tokens_in=tokens)).phase is phase


def test_money_is_a_budget_as_well() -> None:
    """The cost that members report is bounded in millionths."""
    dear = Usage(cost_micros=10 * MICROS)
    story = launched("ada", "bob").speaks("ada", Discussion(content="…", next_speaker=AgentId("bob")), usage=dear)
    assert (story.phase, _reason(story.concludes("ada", Reason.FAILED))) == (Phase.CONCLUDING, Reason.BUDGET)


def test_a_spent_budget_cancels_the_tasks_that_run() -> None:
    """All of them are, whoever has spent the last of it, and say why."""
    story = _tasked("t1-1:bob", "t1-2:eve").progresses("t1-2").progresses("t1-1").says("ada", to="bob", tokens=MAX_TOKENS)
    closed = [task for task in story.state.tasks if isinstance(task, ClosedTask)]
    assert [(task.outcome, task.why) for task in closed] == [(TaskOutcome.CANCELLED, "the token budget is spent")] * 2


def test_no_report_on_a_task_ends_a_group() -> None:
    """A task that says it has cost more than nine tenths of what is left fails alone; so much counts, and the others go on."""
    told = _tasked("t1-1:bob", "t1-2:eve").progresses("t1-2").progresses("t1-1", tokens=10**15)
    finished = _tasked("t1-1:bob", "t1-2:eve").progresses("t1-2").finishes("t1-1", tokens=10**15)
    for story in (told, finished):
        assert (story.phase, story.outcome("t1-1"), story.state.spent.tokens) == (Phase.DISCUSSING, TaskOutcome.FAILED, 900)
        assert story.finishes("t1-2", tokens=90).outcome("t1-2") is TaskOutcome.DONE


def test_what_the_dearest_turn_took_is_kept_from_tasks() -> None:
    """The group can speak once more, whatever is reported; by the header of a report nothing is added."""
    dear = InformTaskResult(task_id=TaskId("t2-1"), task_conclusion="…", usage=Usage(tokens_out=2_000))
    story = launched("ada", "bob").says("ada", to="bob", tokens=300).assigns("bob", "t2-1:ada")
    for told in (dear, dear.model_copy(update={"usage": None})):
        assert story.speaks("ada", told, turn=2, usage=Usage(tokens_in=2_000)).state.spent.tokens == MAX_TOKENS - 300


def test_no_question_of_a_task_and_no_answer_to_it_ends_a_group() -> None:
    """What their headers say counts up to the task's share, and is no turn that the next one has to be paid like."""
    asked = TaskQuestion(**WELL, task_id=TaskId("t1-1"), number=1)
    answer = Decision(task_id=TaskId("t1-1"), choice="yes")
    story = _tasked().progresses("t1-1").speaks("bob", asked, turn=1, usage=Usage(tokens_in=10**15))
    answered = story.speaks("ada", answer, usage=Usage(tokens_in=10**15))
    assert [(one.phase, one.state.spent.tokens) for one in (story, answered)] == [
        (Phase.DISCUSSING, 900),
        (Phase.DISCUSSING, 990),
    ]


def test_whoever_concludes_may_still_spend() -> None:
    """An announcement that crosses the bound is a conclusion of the members' own will."""
    story = launched("ada").speaks("ada", ConcludeGroupDiscussion(), usage=Usage(tokens_in=MAX_TOKENS))
    assert (isinstance(story.state.stage, Concluding), _reason(story.concludes("ada"))) == (True, Reason.CONCLUDED)


def test_a_group_whose_team_was_too_dear_to_find_can_only_conclude() -> None:
    """What forming the team has cost counts from the first entry on."""
    event = GroupLaunched(at=START, charter=charter("ada", limits=limits()), usage=Usage(tokens_out=MAX_TOKENS))
    state = step(None, event).state
    assert (state.phase, state.floor_holder, state.spent.tokens) == (Phase.CONCLUDING, "ada", MAX_TOKENS)


def test_a_tasks_reports_give_totals() -> None:
    """A report that is lost costs nothing in the count, nor does one that says the same again or less."""
    story = (
        _tasked()
        .progresses("t1-1", tokens=10)
        .progresses("t1-1", tokens=40)
        .progresses("t1-1", tokens=40)
        .progresses("t1-1", tokens=5)
    )
    assert story.finishes("t1-1", tokens=50).state.spent == Usage(tokens_out=50)


def test_a_nested_team_is_lent_half_of_what_is_left() -> None:
    """Of the turns and the tokens half, of the time nine tenths; a second team gets half of the rest."""
    story = _tasked("t1-1:bob", "t1-2:eve").progresses("t1-1", tokens=200).nests("t1-1", "sub1").nests("t1-2", "sub2")
    deadline = START + timedelta(days=1) * 0.9
    assert story.state.loans == (
        Loan(subgroup=CommId("sub1"), turns=4, tokens=400, cost_micros=5 * MICROS, deadline=deadline),
        Loan(subgroup=CommId("sub2"), turns=2, tokens=200, cost_micros=2 * MICROS + MICROS // 2, deadline=deadline),
    )


def test_what_a_nested_team_used_up_is_its_parents_too() -> None:
    """When it ends the loan is taken back, and turns and usage are counted."""
    used = Usage(tokens_in=7, tokens_out=5, cost_micros=3)
    state = _tasked().nests("t1-1").nested_ends("t1-1", turns=3, usage=used).state
    assert (state.loans, state.spent, state.turns_left) == ((), used, 9 - 1 - 3)


def test_what_a_cancelled_team_used_up_is_counted_when_it_ends() -> None:
    """Its task is closed before; the loan stands until the team has said what it came to, once."""
    story = _tasked().nests("t1-1").finishes("t1-1")
    assert (story.state.turns_left, story.state.spent) == (4, NOTHING)
    paid = story.nested_ends("t1-1", reason=Reason.CANCELLED, turns=1, usage=Usage(tokens_in=9))
    assert (paid.state.turns_left, paid.state.spent, paid.outcome("t1-1")) == (7, Usage(tokens_in=9), TaskOutcome.DONE)


def test_a_nested_team_that_spent_too_much_fails_its_task_alone() -> None:
    """However much its last message said: another team goes on with what it was lent, and so does the parent."""
    story = _tasked("t1-1:bob", "t1-2:eve").nests("t1-1", "sub1").nests("t1-2", "sub2")
    story = story.nested_ends("t1-1", "sub1", usage=Usage(tokens_in=MAX_TOKENS))
    assert (story.phase, story.outcome("t1-1"), story.outcome("t1-2")) == (Phase.DISCUSSING, TaskOutcome.FAILED, None)
    assert story.state.spent.tokens == 750 - 75


def test_what_is_lent_cannot_be_used_by_the_lender() -> None:
    """Of nine turns one is taken and four are lent: after four more the discussion is over."""
    story = _tasked().nests("t1-1")
    for speaker, other in (("ada", "bob"), ("bob", "ada")) * 2:
        assert story.phase is Phase.DISCUSSING
        story = story.says(speaker, to=other)
    assert (story.phase, story.concludes("ada").state.turns_taken) == (Phase.CONCLUDING, 5)


def test_a_nested_team_ends_before_its_tasks_deadline() -> None:
    """The time of a task bounds the team that serves it."""
    task = specs(("t1-1:bob",))[0].model_copy(update={"timeout": timedelta(seconds=10)})
    state = launched("ada", "bob").speaks("ada", SyncTaskAssignment(tasks=(task,))).nests("t1-1").state
    assert [loan.deadline for loan in state.loans] == [START + timedelta(seconds=10)]


def test_a_cancelled_team_accounts_for_the_teams_nested_in_it() -> None:
    """Nobody takes their reports any more, so that all they were lent counts as used."""
    parent = ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-0"))
    story = launched("bob", "eve", parent=parent, depth=1).assigns("bob", "t1-1:eve").progresses("t1-1", tokens=100).nests("t1-1")
    report = next(effect for effect in story.cancelled().effects if isinstance(effect, ReportToParent))
    assert (report.turns, report.usage.tokens) == (1 + 4, 100 + 450)


def test_the_last_turn_is_not_lent() -> None:
    """A parent keeps a turn to say something with what the team found."""
    two_left = _tasked(max_turns=3).progresses("t1-1").nests("t1-1").state
    refused = (
        _tasked(max_turns=2)
        .progresses("t1-1")
        .refusal(SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=CommId("sub")))
    )
    assert ([loan.turns for loan in two_left.loans], two_left.turns_left, refused.code) == ([1], 1, "too_little_left")


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_tree_of_teams_never_uses_more_than_its_goals_budget(seed: int) -> None:
    """Turns are exact. Tokens exceed the budget by at most one message in each group, conclusions apart.

    Any group may move at any time, so teams on all levels run side by side, and teams are cancelled while they spend. The root's
    own count is exact as long as no team was cancelled that had lent something itself. Where tasks have shares, what is told beyond
    one counts nowhere.
    """
    choose = random.Random(seed).choice
    rules = limits(max_turns=choose((1, 2, 12, 40, 100))).model_copy(update={"max_tokens": choose((1, 20, 100, 300, 20_000))})
    tree = Tree(rules)
    for _ in range(400):
        running = [comm_id for comm_id, state in tree.states.items() if not state.phase.is_terminal]
        if not running:
            break
        tree.act(choose(running), choose, Usage(tokens_in=choose((0, 1, DEAREST, DEAREST))))
        crossed = sum(spent_budget(state) is not None for state in tree.states.values())
        assert tree.turns() <= rules.max_turns
        root, most = tree.states[COMM], (rules.max_tokens or 0) + DEAREST * crossed
        assert root.spent.tokens <= most + DEAREST
        if not root.phase.is_terminal and not root.loans:
            counted, taken = root.spent.tokens, root.turns_taken + root.nested_turns
            assert taken >= tree.turns()
            assert tree.lost_reports or taken == tree.turns()
            told = tree.spent(conclusions=True)
            assert tree.lost_reports or counted <= told
