"""Ids and subjects: whatever is put into a subject comes back, and nothing gets in that NATS would read otherwise."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol import subjects
from ioa.protocol.ids import (
    ADMIN,
    LOCAL,
    MAX_ID_CHARS,
    AgentId,
    AgentIdField,
    CommId,
    GoalId,
    GoalName,
    PoolId,
    TaskId,
    UserId,
    check_token,
    comm_id_of_goal,
    comm_id_of_task,
    complete_goal,
    parse_agent_id,
)

FIRST, REST = string.ascii_letters + string.digits, string.ascii_letters + string.digits + "_-"
TOKENS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z").map(str)
HOSTILE = st.builds(
    lambda before, bad, after: before + bad + after,
    st.text(alphabet=REST, max_size=10),
    st.sampled_from([*".*> $/\\\t\r\n\0\u00a0", "é", "\u200b", "١"]),
    st.text(alphabet=REST, max_size=10),
)


class Named(BaseModel):
    """A model with an id."""

    agent_id: AgentIdField


@given(st.text(max_size=80) | TOKENS)
def test_whatever_is_taken_is_one_safe_token(text: str) -> None:
    """Any text is refused or is a token of a subject."""
    safe = 0 < len(text) <= MAX_ID_CHARS and text[0] in FIRST and all(character in REST for character in text)
    try:
        taken = check_token(text) == text
    except ValueError:
        taken = False
    assert taken == safe


@given(HOSTILE)
def test_a_character_with_a_meaning_in_subjects_is_refused(text: str) -> None:
    """Dots, wildcards, white space and look-alikes get in nowhere, neither by hand nor in a model."""
    with pytest.raises(InvalidInputError, match="not a valid id"):
        parse_agent_id(text)
    with pytest.raises(ValidationError):
        Named.model_validate({"agent_id": text})


@given(TOKENS, TOKENS, TOKENS)
def test_a_say_subject_gives_back_group_and_sender(comm_id: str, agent_id: str, router: str) -> None:
    """Also if it names a router."""
    speaker = (PoolId(agent_id), AgentId(agent_id), CommId(comm_id))
    for subject in (subjects.say(*speaker), subjects.say_to(*speaker, router)):
        assert subjects.parse_say(subject) == (comm_id, agent_id)


@given(TOKENS, st.integers(min_value=0, max_value=2**53))
def test_every_subject_of_a_group_gives_back_the_group(comm_id: str, at_ms: int) -> None:
    """Logs and timers name their group."""
    group = CommId(comm_id)
    built = (subjects.log(group), subjects.timer(group), subjects.timer_schedule(group, at_ms))
    assert [subjects.parse_comm(subject) for subject in built] == [comm_id] * 3


@given(TOKENS)
def test_a_goals_subject_gives_back_its_user_and_addressee(name: str) -> None:
    """An agent or a pool; nobody if the goal is for anyone."""
    user = UserId(name)
    assert subjects.parse_goal_subject(subjects.goal_to(user, PoolId("sums"))) == (name, "sums")
    assert subjects.parse_goal_subject(subjects.goal_of(user)) == (name, None)


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("work", subjects.work_of(None)),
        ("work.csv", subjects.work_of(PoolId("csv"))),
        ("result.anna.g1", subjects.result_of(GoalName(UserId("anna"), GoalId("g1")))),
        ("inbox.ada.n1", subjects.inbox(AgentId("ada"), "n1")),
        ("dead.too_large", subjects.dead("too_large")),
        ("agent.crew.ada.say.c1", subjects.say(PoolId("crew"), AgentId("ada"), CommId("c1"))),
    ],
)
def test_subjects_are_spelled_as_the_permissions_spell_them(name: str, subject: str) -> None:
    """The server's permissions name these subjects literally."""
    assert subject == f"ioa.v1.{name}"


@pytest.mark.parametrize(
    "subject", ["ioa.v1.comm.c1.log", "ioa.v2.agent.p.a.say.c1", "ioa.v1.agent.p.a.say", "ioa.v1.agent.p.a.say.c1.r.x", ""]
)
def test_what_is_no_say_subject_is_refused(subject: str) -> None:
    """Nothing is guessed from a subject of another form."""
    with pytest.raises(InvalidInputError):
        subjects.parse_say(subject)


@pytest.mark.parametrize("token", ["*", ">", "", "a b"])
def test_a_subject_with_a_wildcard_for_a_name_is_refused(token: str) -> None:
    """A client may publish on a subject that holds a wildcard; nobody bears that name."""
    with pytest.raises(InvalidInputError):
        subjects.parse_say(f"ioa.v1.agent.p.{token}.say.c1")
    with pytest.raises(InvalidInputError):
        subjects.parse_comm(f"ioa.v1.comm.{token}.log")


@given(TOKENS, TOKENS, TOKENS)
def test_a_group_is_derived_from_what_it_serves(goal: str, other: str, task: str) -> None:
    """The same goal or task has the same group; goals, tasks and other goals have others."""
    root, nested = comm_id_of_goal(GoalId(goal)), comm_id_of_task(CommId(goal), TaskId(task))
    assert check_token(root) == comm_id_of_goal(GoalId(goal))
    assert check_token(nested) == comm_id_of_task(CommId(goal), TaskId(task))
    assert root != nested
    assert (root == comm_id_of_goal(GoalId(other))) == (goal == other)


def test_anothers_goal_is_not_taken_for_ones_own() -> None:
    """Whose own is not on record yet, or an old one, is told of the other: anybody may call his goal alike."""
    others = [GoalName(UserId("eve"), GoalId("report")), GoalName(LOCAL, GoalId("old"))]
    for start in ("report", "rep"):
        with pytest.raises(NotFoundError, match="write eve/report"):
            complete_goal(start, UserId("anna"), others, complete=True)
    meant = [("eve/rep", UserId("anna")), ("rep", UserId("eve")), ("rep", ADMIN), ("rep", LOCAL), ("rep", None)]
    assert [complete_goal(*asked, others, complete=True) for asked in meant] == [others[0]] * len(meant)
    assert complete_goal("old", UserId("anna"), others, complete=True) == others[1]
