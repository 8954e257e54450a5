"""The model brain: the messages that it makes of good answers, and its reaction to bad ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from structlog.testing import capture_logs

from ioa.agent.brain_port import TaskView
from ioa.agent.model import Budget, ModelBrain
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.group.state import Ended
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TeamLaunch, UndecidedError
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pass,
    PassCause,
    Payload,
    SyncTaskAssignment,
)
from ioa.protocol.usage import Usage
from ioa.testing.scripted_model import ScriptedModel
from tests.unit.agent.model.golden_prompts import give, report
from tests.unit.agent.model.machine_group import Found, Group, card
from tests.unit.agent.model.situations import ANN, BOB, CARDS, CARL, KNOWN, SHORT, decision, launched, speech, with_open_task

DISCUSS = decision(type="DISCUSSION", next_speaker="bob", content="Which month?")
SAID = Discussion(content="Which month?", next_speaker=BOB)
CONCLUDE = decision(type="CONCLUDE", goal_reached=True, content="That is all.")
CUT = ModelAnswer(decision(type="DISCUSSION", next_speaker="bob", content="Which"), finish="length")


def assigned(*tasks: dict[str, object], mode: str = "wait", rejects: Sequence[tuple[str, str]] = (), **more: object) -> str:
    """An answer that assigns tasks."""
    return speech(rejects, type="ASSIGN", mode=mode, tasks=tasks, **more)


def given(assignee: str, task_desc: str, name: str = "", uses: Sequence[str] = (), **more: object) -> dict[str, object]:
    """One task of an assignment."""
    return {"name": name, "assignee": assignee, "task_desc": task_desc, "uses": list(uses), **more}


def concluding(*, rejects: Sequence[tuple[str, str]] = (), reached: bool = True, content: str = "All:", **more: object) -> str:
    """An answer that concludes."""
    return speech(rejects, type="CONCLUDE", goal_reached=reached, content=content, **more)


def artifact(task_id: str, name: str, text: str) -> Artifact:
    """A file of a task, by reference."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Artifact(name=name, object_name=f"c1/{task_id}/{name}", size_bytes=len(text), sha256=digest, media_type="text/plain")


def brain(*script: str | IoaError | ModelAnswer, budget: Budget = SHORT) -> tuple[ModelBrain, ScriptedModel]:
    """Make a brain whose model gives these answers, and that waits in no time."""
    model = ScriptedModel(script)
    return ModelBrain(model, budget=replace(budget, model="large"), sleep=Pauses()), model


class Pauses(list[float]):
    """Notes how long is waited, and does not wait."""

    async def __call__(self, seconds: float) -> None:
        """Note it."""
        self.append(seconds)


async def said_by(group: Group, *script: str, me: AgentId = ANN) -> Payload:
    """Let a member say what its model answers; the machine must accept it."""
    mind, _ = brain(*script)
    view = group.view(me)
    message = await mind.speak(view)
    assert not isinstance(message, Invite)
    group.say(me, message)
    group.history.thoughts[view.turn] = view.meter.thought
    return message


def ended(group: Group) -> Ended:
    """How the group has ended."""
    assert isinstance(group.state.stage, Ended)
    return group.state.stage


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (DISCUSS, SAID),
        (f"```json\n{DISCUSS}\n```", SAID),
        (f"<think>{{'a': 1}} hm {{</think>Sure! Here it is: {DISCUSS} Anything else?", SAID),
        (f"In set notation {{bob}} is next. {DISCUSS}", SAID),
        (DISCUSS.replace("}", ', "why": "extra"}', 1), SAID),
        (DISCUSS.replace("Which month?", "a\\ud800b"), SAID.model_copy(update={"content": "a?b"})),
        (decision(type="PASS", content="Bob knows."), Pass(cause=PassCause.NOTHING_TO_ADD, content="Bob knows.")),
    ],
)
async def test_good_answer_becomes_the_message(answer: str, message: Payload) -> None:
    """Fences, thoughts, prose, extra fields and half characters do no harm."""
    assert await said_by(launched(), answer) == message


async def test_task_ids_are_made_of_the_turn_and_of_names_or_numbers() -> None:
    """A name that is taken, or can be no id, gives way to the number of the task in the group; a retry makes the same ids."""
    names, group = ("sum", "sum", "x.y", "", "2", "bar-chart"), launched()
    ann, _ = brain(*[assigned(*[given("bob", "add up", name=name) for name in names])] * 2)
    said = await ann.speak(group.view(ANN))
    assert isinstance(said, SyncTaskAssignment) and said == await ann.speak(group.view(ANN))
    assert [task.task_id for task in said.tasks] == ["t1-sum", "t1-1", "t1-2", "t1-3", "t1-4", "t1-bar-chart"]
    later = await said_by(with_open_task(group), assigned(given("carl", "draw"), mode="go_on"))
    assert isinstance(later, AsyncTaskAssignment) and later.tasks[0].task_id == "t2-2"


async def test_cut_answer_is_asked_again_with_twice_the_limit_and_then_shorter() -> None:
    """However well the beginning of an answer reads, half of it is not taken for the whole."""
    ann, model = brain(CUT, CUT, DISCUSS)
    assert await ann.speak(launched().view(ANN)) == SAID
    assert [asked.limits.max_tokens for asked in model.asked] == [1_000, 2_000, 2_000]
    assert model.asked[0].messages == model.asked[1].messages
    assert "cut off at 2,000 tokens" in model.asked[2].messages[-1].content


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it holds no whole JSON object"),
        (DISCUSS[:40], "it holds no whole JSON object"),
        (
            decision(type="DISCUSSION", next_speaker="mallory", content="hi"),
            "mallory cannot be the next speaker; name one of bob, carl.",
        ),
        (decision(type="DISCUSSION", next_speaker="bob", content="   "), "content: String should have at least 1 character"),
        (concluding(answer_from=[{"result": "t9-x"}]), "t9-x is no result; there are no results."),
        (
            decision(type="PAUSE", triggers=["t1-1"]),
            "PAUSE is not possible now. Possible: DISCUSSION, ASSIGN, CONCLUDE, PASS, INVITE, READ.",
        ),
        (assigned(given("bob", "x", uses=["t9"])), "Task t1-1 uses unknown tasks: t9. Tasks: none yet."),
        (assigned(given("bob", "x", "a", ["b"]), given("bob", "y", "b", ["a"])), "These tasks wait for each other"),
        (speech([("t1-1", "wrong")], type="DISCUSSION", next_speaker="bob", content="hi"), "t1-1"),
    ],
)
async def test_useless_answer_is_repaired_twice_and_then_the_floor_is_passed(text: str, told: str) -> None:
    """It goes back to the model with the machine's reason and the legal alternatives; nothing is guessed in its place."""
    ann, model = brain(text, text, text)
    with capture_logs() as logs:
        said = await ann.speak(launched().view(ANN))
    assert isinstance(said, Pass) and said.cause is PassCause.NO_USABLE_ANSWER
    assert [(len(asked.messages), asked.messages[-1].role) for asked in model.asked] == [(2, "user"), (4, "user"), (6, "user")]
    assert "cannot be used" in model.asked[1].prompt and told in model.asked[1].messages[-1].content
    warned = [(log["decision"], log["cause"]) for log in logs if log["event"] == "model_did_not_decide"]
    assert warned == [("speak", "useless_answer")]
    bob, _ = brain(text, DISCUSS)
    assert await bob.speak(launched().view(ANN)) == SAID


@pytest.mark.parametrize(
    ("script", "budget", "passed", "cause"),
    [
        ([CUT] * 4, SHORT, PassCause.NO_USABLE_ANSWER, "cut"),
        ([ModelError("no such key")], SHORT, PassCause.MODEL_UNAVAILABLE, "refused"),
        ([DISCUSS], Budget(decision_timeout=timedelta(0)), PassCause.MODEL_UNAVAILABLE, "too_slow"),
    ],
)
async def test_model_that_fails_passes_at_once_with_the_cause(
    script: Sequence[str | IoaError | ModelAnswer], budget: Budget, passed: PassCause, cause: str
) -> None:
    """No component decides in the model's place, and a group that knows no pass gets no message."""
    ann, model = brain(*script, budget=budget)
    view = launched().view(ANN)
    with capture_logs() as logs:
        said = await ann.speak(view)
    assert isinstance(said, Pass) and said.cause is passed and said.content.startswith("large: ")
    causes = [log["cause"] for log in logs if log["event"] == "model_did_not_decide"]
    assert (causes, view.meter.decided_by, len(model.asked) <= len(script)) == ([cause], None, True)
    again, _ = brain(*script, budget=budget)
    with pytest.raises(UndecidedError):
        await again.speak(replace(view, legal=tuple(kind for kind in view.legal if kind != "PASS")))


async def test_unavailable_model_is_asked_again_later_and_later() -> None:
    """A restart of the server costs a pause: 1, 2, 4 seconds and so on, or what the server asks for."""
    down, busy = UnavailableError("down"), UnavailableError("busy", retry_after=timedelta(seconds=45))
    pauses = Pauses()
    ann = ModelBrain(ScriptedModel([down, down, busy, down, DISCUSS]), budget=replace(SHORT, model="large"), sleep=pauses)
    view = launched().view(ANN)
    assert await ann.speak(view) == SAID
    assert (pauses, ann.failures, view.meter.decided_by) == ([1, 2, 45, 8], 0, DecidedBy(kind="model", name="large"))


async def test_unavailable_model_passes_when_its_patience_is_used_up() -> None:
    """It is asked again as long as a decision may take."""
    pauses = Pauses()
    ann = ModelBrain(ScriptedModel(lambda asked: UnavailableError("down")), budget=replace(SHORT, model="large"), sleep=pauses)
    said = await ann.speak(launched().view(ANN))
    assert said == Pass(cause=PassCause.MODEL_UNAVAILABLE, content="large: down")
    assert 570 < sum(pauses) <= 600


async def test_members_wait_before_they_ask_again_when_all_have_passed() -> None:
    """Models that refuse at once do not fill the log: members wait longer each time, and ask at once while others can speak."""
    pauses, group = Pauses(), launched()
    ann = ModelBrain(ScriptedModel(lambda asked: ModelError("no such key")), budget=replace(SHORT, model="large"), sleep=pauses)
    for _ in range(12):
        me = group.state.floor_holder
        assert me is not None
        group.say(me, await ann.speak(group.view(me)))
        group.at += timedelta(seconds=pauses[-1] if pauses else 0)
    assert pauses[:4] == [3, 3, 6, 12] and max(pauses) <= 30


@pytest.mark.parametrize(("uses", "kept"), [(("t1-x",), []), ((), ["c1/t1-x/a.txt"])])
async def test_conclusion_has_the_files_of_the_tasks(uses: Sequence[str], kept: list[str]) -> None:
    """Files of tasks are attached, except files that a later task replaced; or only the files that the model names."""
    group = launched()
    for turn, text in ((1, "draft"), (2, "final")):
        give(group, BOB, f"t{turn}-x", text, *(uses if turn == 2 else ()))
        report(group, f"t{turn}-x", text, *(artifact(f"t{turn}-x", name, text) for name in ("a.txt", f"{text}.txt")))
    group.say(ANN, ConcludeGroupDiscussion())
    ann, _ = brain(concluding(), concluding(reached=False, files=[{"name": "a.txt", "from": "t1-x"}]), concluding(files=[]))
    said = [one for _ in range(3) if isinstance(one := await ann.conclude(group.view(ANN)), Conclusion)]
    assert [one.reason for one in said] == [Reason.CONCLUDED, Reason.FAILED, Reason.CONCLUDED]
    assert [[file.object_name for file in one.artifacts] for one in said] == [
        [*kept, "c1/t1-x/draft.txt", "c1/t2-x/a.txt", "c1/t2-x/final.txt"],
        ["c1/t1-x/a.txt"],
        [],
    ]


async def test_rejected_result_is_no_part_of_the_answer() -> None:
    """Neither its words nor its files, whether it was rejected before or by the conclusion itself."""
    group = launched()
    give(group, BOB, "t1-draft", "draft")
    report(group, "t1-draft", "It is 12.", artifact("t1-draft", "a.txt", "12"))
    wrong = [("t1-draft", "wrong")]
    named: list[dict[str, object]] = [
        {"answer_from": [{"result": "t1-draft"}]},
        {"files": [{"name": "a.txt", "from": "t1-draft"}]},
        {},
    ]
    ann, model = brain(*[concluding(rejects=wrong, reached=False, content="No figure is right.", **one) for one in named])
    group.say(ANN, await ann.speak(group.view(ANN)))
    assert ended(group).artifacts == ()
    assert ["t1-draft is no result" in asked.prompt for asked in model.asked[1:]] == [True, True]


async def test_conclusion_without_words_is_asked_for_when_it_is_announced() -> None:
    """The model states the conclusion in a second answer; if it fails, another member can conclude."""
    group = launched()
    empty = concluding(content=" ")
    ann, model = brain(empty, empty, CONCLUDE, ModelError("no such key"))
    group.say(ANN, await ann.speak(group.view(ANN)))
    said = await ann.conclude(group.view(ANN))
    assert (group.state.phase, said.content, "`content` is empty" in model.asked[2].prompt) == ("concluding", "That is all.", True)
    assert isinstance(await ann.conclude(group.view(ANN)), Pass)


def mission(text: str = "total sales, then draw charts") -> Mission:
    """Ann's goal."""
    return Mission(text, (), CARDS[0])


def search_for(*needs: str) -> str:
    """An answer that searches."""
    return decision(type="search_client", needs=needs)


def launch(*members: str) -> str:
    """An answer that launches."""
    return decision(type="launch_group_chat", members=members)


@pytest.mark.parametrize(
    ("script", "members", "searches", "told"),
    [
        ((search_for("statistics of CSV files", "draws charts"), launch("bob", "ann")), (BOB,), 2, "similarity 0.65"),
        ((search_for("CSV"), launch("mallory"), launch("carl")), (CARL,), 2, "mallory was not found; found were"),
        ((launch(),), (), 1, "carl (model): draws charts"),
    ],
    ids=["two tools", "invented member", "alone"],
)
async def test_team_is_launched_with_agents_that_were_found(
    script: Sequence[str], members: Sequence[AgentId], searches: int, told: str
) -> None:
    """An invented member is rejected; a group without other members is accepted."""
    search = Found(KNOWN)
    ann, model = brain(*script)
    assert await ann.form_team(mission(), search) == TeamLaunch(members=tuple(members))
    assert (search.searches, len(model.asked), told in model.asked[-1].prompt) == (searches, len(script), True)


@pytest.mark.parametrize(("error", "is_away"), [(ModelError("no such key"), True), ("what?", False)])
async def test_goal_is_given_back_if_the_model_fails(error: str | IoaError, is_away: bool) -> None:
    """An agent whose model answers can take it."""
    ann, _ = brain(error, "what?", "what?")
    with pytest.raises(UndecidedError) as undecided:
        await ann.form_team(mission(), Found(KNOWN))
    assert undecided.value.is_away is is_away


async def test_model_that_never_launches_acts_at_most_ten_times() -> None:
    """At most nine searches, then one forced launch."""
    number, search = count(), Found(KNOWN)
    ann = ModelBrain(ScriptedModel(lambda asked: search_for(f"need number {next(number)}")), budget=SHORT)
    with pytest.raises(UndecidedError, match="The searches are used up"):
        await ann.form_team(mission(), search)
    assert search.searches == 9


async def test_report_that_no_agent_fits_has_the_needs_and_the_reason() -> None:
    """Needs are never empty: without any, the goal is the need."""
    ann, _ = brain(decision(type="report_nobody_fits", needs=["a juggler"], why=" Both only count. "))
    assert await ann.form_team(mission("draws torches"), Found(KNOWN)) == NobodyFits(("a juggler",), "Both only count.")
    bob, _ = brain(decision(type="report_nobody_fits", needs=[" "], why=""))
    assert await bob.form_team(mission("draws torches"), Found(KNOWN)) == NobodyFits(("draws torches",))


@pytest.mark.parametrize(
    ("script", "may_team_up", "max_turns", "approach"),
    [
        ((launch(),), True, 6, None),
        ((), False, 6, None),
        ((), True, 2, None),
        ((ModelError("no such key"),), True, 6, None),
        ((search_for("draws charts"), ModelError("no such key")), True, 6, None),
        ((search_for("draws charts"), launch("carl")), True, 6, TeamLaunch(members=(CARL,))),
    ],
    ids=["alone", "card forbids teams", "too few turns", "model fails", "model fails later", "nested team"],
)
async def test_task_is_done_alone_or_by_a_nested_team(
    script: Sequence[str | IoaError], may_team_up: bool, max_turns: int, approach: TeamLaunch | None
) -> None:
    """The model is asked only if the agent may open a team; if it fails, the agent does the task alone."""
    view = with_open_task(launched(max_turns=max_turns)).view(BOB)
    task = TaskView(view.tasks[0].spec, CARDS[1].model_copy(update={"may_team_up": may_team_up}), view)
    bob, model = brain(*script)
    assert await bob.approach(task, Found(KNOWN)) == approach
    assert len(model.asked) == len(script)


async def test_each_answer_costs() -> None:
    """Useless answers and repairs cost as well; the price is that of a million tokens, less of those that were cached."""
    priced = replace(SHORT, prompt_price=2.0, cached_price=0.5, answer_price=10.0)
    useless, useful = (
        ModelAnswer("what?", prompt_tokens=50, answer_tokens=3),
        ModelAnswer(DISCUSS, prompt_tokens=70, cached_tokens=40),
    )
    ann, _ = brain(useless, useful, budget=priced)
    view = launched().view(ANN)
    await ann.speak(view)
    cost = 2 * 80 + 40 // 2 + 10 * 3
    assert view.meter.total == Usage(tokens_in=120, tokens_cached=40, tokens_out=3, cost_micros=cost)


async def test_model_invites_one_member_per_turn_and_goes_on_with_it() -> None:
    """In a free group, the invitation contains the need."""
    inviting, group = decision(type="INVITE", need="Speaks Frisian."), launched()
    mind, model = brain(inviting, inviting, DISCUSS)
    assert await mind.speak(group.view(ANN)) == Invite(need="Speaks Frisian.", why="Speaks Frisian.")
    group.invite(ANN, card("zoe", "speaks Frisian"))
    assert isinstance(await mind.speak(group.view(ANN)), Discussion)
    assert "INVITE is not possible now." in model.asked[2].prompt
