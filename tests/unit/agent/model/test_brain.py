"""The model brain: what it makes of good answers, and what becomes of bad ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from structlog.testing import capture_logs

from ioa import Agent
from ioa.agent.brain_port import TaskView
from ioa.agent.model import Budget, ModelBrain
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.group.events import MemberLost
from ioa.group.state import Ended, GroupState
from ioa.hosting.brains import open_minds
from ioa.ports.brain import Alone, Invite, Mission, NobodyFits, TeamLaunch, UndecidedError
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    Pass,
    PassCause,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.usage import Usage
from ioa.testing.scripted_model import ScriptedModel
from tests.unit.agent.model.machine_group import Group, WordSearch, card
from tests.unit.agent.model.situations import ANN, BOB, CARDS, CARL, SHORT, decision, launched, speech, with_open_task

DISCUSS = decision(type="DISCUSSION", next_speaker="bob", content="Which month?")
CONCLUDE = decision(type="CONCLUDE", goal_reached=True, content="That is all.")


def given(assignee: str, task_desc: str, name: str = "", uses: Sequence[str] = ()) -> dict[str, object]:
    """One task of an assignment."""
    return {"name": name, "assignee": assignee, "task_desc": task_desc, "uses": list(uses)}


def stated(said: Conclusion | Pass) -> Conclusion:
    """A conclusion that must have been stated."""
    assert isinstance(said, Conclusion)
    return said


def artifact(task_id: str, name: str, text: str) -> Artifact:
    """A file of a task, by reference."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Artifact(name=name, object_name=f"c1/{task_id}/{name}", size_bytes=len(text), sha256=digest, media_type="text/plain")


def brain(*script: str | IoaError | ModelAnswer, budget: Budget = SHORT) -> tuple[ModelBrain, ScriptedModel]:
    """Make a brain whose model gives these answers."""
    model = ScriptedModel(script)
    return ModelBrain(model, name="large", budget=budget, sleep=no_time), model


async def no_time(seconds: float) -> None:
    """Wait in no time."""


async def test_says_what_the_model_says() -> None:
    """A legal answer becomes the message."""
    ann, _ = brain(DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)


async def test_makes_task_ids_of_the_names_that_can_be_one() -> None:
    """A task is called by the turn and the model's name for it; one whose name is taken or can be no id, by its number."""
    names = ("sum", "sum", "x.y", "", "2", "bar-chart")
    ann, _ = brain(decision(type="ASSIGN", mode="wait", tasks=[given("bob", "add up", name=name) for name in names]))
    said = await ann.speak(launched().view(ANN))
    assert isinstance(said, SyncTaskAssignment)
    assert [task.task_id for task in said.tasks] == ["t1-sum", "t1-1", "t1-3", "t1-4", "t1-2", "t1-bar-chart"]


async def test_says_why_tasks_are_given_out_and_waited_for() -> None:
    """The words beside an assignment and a pause reach the group."""
    group = launched()
    ann, _ = brain(
        decision(type="ASSIGN", mode="go_on", content="Both at once.", tasks=[given("bob", "add up")]),
        decision(type="PAUSE", content="For the sum.", triggers=["t1-1"]),
    )
    said = await ann.speak(group.view(ANN))
    assert isinstance(said, AsyncTaskAssignment)
    waited = await ann.speak(with_open_task(launched()).view(ANN))
    assert isinstance(waited, Pause)
    assert (said.content, waited.content) == ("Both at once.", "For the sum.")


async def test_the_same_answer_in_the_same_situation_is_the_same_message() -> None:
    """Deciding again after a crash makes no new ids."""
    answer = decision(type="ASSIGN", mode="go_on", tasks=[given("bob", "add up")])
    ann, _ = brain(answer, answer)
    view = launched().view(ANN)
    assert await ann.speak(view) == await ann.speak(view)


async def test_numbers_the_tasks_through_all_turns() -> None:
    """No two tasks of a group bear one name, so that none passes for another attempt at an older one."""
    group = with_open_task(launched())
    ann, _ = brain(decision(type="ASSIGN", mode="go_on", tasks=[given("carl", "draw")]))
    said = await ann.speak(group.view(ANN))
    assert isinstance(said, AsyncTaskAssignment)
    assert said.tasks[0].task_id == "t2-2"


async def test_may_name_who_is_away_for_a_moment() -> None:
    """A member that is lost only just now is offered, and marked; after a floor's time it is out of reach."""
    group = launched()
    group.happen(MemberLost(at=group.at, agent_id=BOB))
    ann, model = brain(DISCUSS, DISCUSS, CONCLUDE)
    said = await ann.speak(group.view(ANN))
    group.at += timedelta(seconds=61)
    group.granted = group.at
    later = await ann.speak(group.view(ANN))
    prompts = [asked.prompt for asked in model.asked]
    assert said == Discussion(content="Which month?", next_speaker=BOB)
    assert isinstance(later, ConcludeGroupDiscussion)
    told = ("Away for a moment, may be given tasks: bob." in prompts[0], "Out of reach: bob." in prompts[1])
    assert (
        told,
        "bob cannot be the next speaker: name another member that is not out of reach. Members in reach: ann, carl." in prompts[2],
    ) == ((True, True), True)


async def test_pauses_on_open_tasks() -> None:
    """Triggers are ids of open tasks, each once."""
    ann, _ = brain(decision(type="PAUSE", triggers=["t1-1", "t1-1"]))
    assert await ann.speak(with_open_task(launched()).view(ANN)) == Pause(triggers=("t1-1",))


async def test_an_answer_that_was_cut_is_asked_again_with_twice_the_room_and_then_shorter() -> None:
    """However well the beginning of an answer reads, half of it is not taken for the whole."""
    cut = ModelAnswer(decision(type="DISCUSSION", next_speaker="bob", content="Which"), finish="length")
    ann, model = brain(cut, cut, DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert [asked.limits.max_tokens for asked in model.asked] == [1_000, 2_000, 2_000]
    assert model.asked[0].messages == model.asked[1].messages
    assert "cut off at 2,000 tokens" in model.asked[2].messages[-1].content


async def test_a_model_whose_reasoning_uses_up_the_room_is_asked_to_reason_less() -> None:
    """Nothing said at the limit: twice the room, then a low effort, once each."""
    nothing = ModelAnswer("", finish="length", reasoning_tokens=1_000)
    ann, model = brain(nothing, nothing, DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert [(asked.limits.max_tokens, asked.limits.effort) for asked in model.asked] == [
        (1_000, None),
        (2_000, None),
        (2_000, "low"),
    ]


async def test_passes_when_every_answer_was_cut() -> None:
    """The cause is told apart from an answer that was useless, and nobody decides in the model's place."""
    ann, _ = brain(*[ModelAnswer(DISCUSS, finish="length")] * 4)
    said = await ann.speak(launched().view(ANN))
    assert isinstance(said, Pass) and said.cause is PassCause.NO_USABLE_ANSWER
    assert ann.tally.undecided == {"speak:cut": 1}


async def test_no_part_of_an_answer_is_taken_for_the_whole() -> None:
    """Cut at any byte, with the server saying so or not, an answer is never accepted but as a whole."""
    whole = json.dumps(
        {"thought": "a {b} c", "decision": {"type": "CONCLUDE", "goal_reached": True, "content": "North 231,324.8 {}"}}
    )
    accepted = []
    for end in range(len(whole)):
        for finish in ("length", "stop"):
            ann, _ = brain(*[ModelAnswer(whole[:end], finish=finish)] * 4)
            await ann.speak(launched().view(ANN))
            accepted += [end] if not ann.tally.undecided else []
    assert accepted == []


async def test_a_process_that_used_a_model_ends_with_its_counts_in_the_log() -> None:
    """The counts are plain values, whatever was counted."""
    environment = {"IOA_LLM_BASE_URL": "http://127.0.0.1:9/v1", "IOA_LLM_MODEL": "tiny"}
    with capture_logs() as lines:
        async with open_minds([Agent("writer", "Writes letters")], environment) as [opened]:
            assert isinstance(opened.brain, ModelBrain) and opened.chat is not None
            opened.brain.tally.count(Usage(tokens_in=7))
            opened.brain.tally.undecided["speak:too_slow"] += 1
    [line] = [line for line in lines if line["event"] == "model_served"]
    assert (line["model"], line["answers"], line["tokens_in"], line["undecided"]) == ("tiny", 1, 7, {"speak:too_slow": 1})


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{DISCUSS}\n```",
        f"<think>{{'a': 1}} hm {{</think>Sure! Here it is: {DISCUSS} Anything else?",
        f"In set notation {{bob}} is next. {DISCUSS}",
        DISCUSS.replace("}", ', "why": "extra"}', 1),
    ],
)
async def test_finds_the_answer_in_what_surrounds_it(text: str) -> None:
    """Fences, thoughts, prose and extra fields do no harm."""
    ann, model = brain(text)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "[1, 2]",
        DISCUSS[:40],
        decision(type="DISCUSSION", next_speaker="mallory", content="hi"),
        decision(type="DISCUSSION", next_speaker="bob", content="   "),
        decision(type="CONCLUDE", goal_reached=True, content="so", answer_from=[{"result": "t9-x"}]),
        decision(type="PAUSE", triggers=["t1-1"]),
        decision(type="ASSIGN", mode="wait", tasks=[given("bob", "x", uses=["t9-x"])]),
        decision(
            type="ASSIGN", mode="wait", tasks=[given("bob", "x", name="a", uses=["b"]), given("bob", "y", name="b", uses=["a"])]
        ),
        speech([("t1-1", "wrong")], type="DISCUSSION", next_speaker="bob", content="hi"),
    ],
)
async def test_repairs_twice_and_then_passes(text: str) -> None:
    """A useless answer goes back to the model with what is wrong, and after two rounds the floor is passed on with the reason."""
    ann, model = brain(text, text, text)
    with capture_logs() as logs:
        said = await ann.speak(launched().view(ANN))
    assert isinstance(said, Pass) and said.cause is PassCause.NO_USABLE_ANSWER
    assert [(len(asked.messages), asked.messages[-1].role) for asked in model.asked] == [(2, "user"), (4, "user"), (6, "user")]
    assert "cannot be used" in model.asked[1].messages[-1].content
    assert ann.tally.undecided == {"speak:useless_answer": 1}
    assert [(log["event"], log["decision"], log["cause"], log["instead"]) for log in logs if log["log_level"] == "warning"] == [
        ("model_did_not_decide", "speak", "useless_answer", "pass")
    ]


async def test_takes_a_repaired_answer() -> None:
    """The second answer counts if the first was useless."""
    ann, _ = brain(decision(type="DISCUSSION", next_speaker="bo", content="hi"), DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert (ann.tally.answers, dict(ann.tally.undecided)) == (2, {})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            decision(type="DISCUSSION", next_speaker="writter", content="hi"),
            "writter cannot be the next speaker: name another member that is not out of reach. Members in reach: ann, bob, carl.",
        ),
        (
            decision(type="PAUSE", triggers=["t1-1"]),
            "PAUSE is not possible now. Possible: DISCUSSION, ASSIGN, CONCLUDE, PASS, INVITE, READ.",
        ),
        (
            decision(type="ASSIGN", mode="wait", tasks=[given("bob", "x", uses=["t9"])]),
            "Task t1-1 uses unknown tasks: t9. Tasks: none yet.",
        ),
    ],
)
async def test_is_told_what_would_be_legal(answer: str, told: str) -> None:
    """An answer that is not legal comes back with a sentence that names what is, and nothing is guessed in its place."""
    ann, model = brain(answer, DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert told in model.asked[1].messages[-1].content


async def test_passes_at_once_when_the_model_refuses() -> None:
    """A key that is wrong will be wrong again: the next member is asked without delay, and reads whose model refused and how."""
    ann, model = brain(ModelError("no such key"))
    view = launched().view(ANN)
    assert await ann.speak(view) == Pass(cause=PassCause.MODEL_UNAVAILABLE, content="large: no such key")
    assert (len(model.asked), view.meter.decided_by, ann.failures) == (1, None, 1)


async def test_asks_again_later_and_later_while_the_model_is_away() -> None:
    """A restart of the server costs a pause: 1, 2, 4 seconds and so on, or what the server asks for."""
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    busy = UnavailableError("busy", retry_after=timedelta(seconds=45))
    model = ScriptedModel([UnavailableError("down"), UnavailableError("down"), busy, UnavailableError("down"), DISCUSS])
    ann = ModelBrain(model, name="large", budget=SHORT, sleep=note)
    view = launched().view(ANN)
    view = replace(view, state=patient(view.state))
    assert await ann.speak(view) == Discussion(content="Which month?", next_speaker=BOB)
    assert (pauses, ann.failures, view.meter.decided_by) == ([1, 2, 45, 8], 0, DecidedBy(kind="model", name="large"))


@pytest.mark.parametrize(("is_patient", "waited"), [(True, 600), (False, 58)])
async def test_passes_when_its_patience_is_used_up(is_patient: bool, waited: float) -> None:
    """A member with patience on its card keeps asking as long as a decision may take, another one until its floor ends."""
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    ann = ModelBrain(ScriptedModel(lambda asked: UnavailableError("down")), name="large", budget=SHORT, sleep=note)
    view = launched().view(ANN)
    said = await ann.speak(replace(view, state=patient(view.state)) if is_patient else view)
    assert said == Pass(cause=PassCause.MODEL_UNAVAILABLE, content="large: down")
    assert waited - 30 < sum(pauses) <= waited


async def test_nothing_passes_in_a_group_that_knows_no_pass() -> None:
    """Beside older members a model that fails stays silent, as their group expects; rules do not speak for it."""
    ann, _ = brain(ModelError("no such key"))
    view = launched().view(ANN)
    with pytest.raises(UndecidedError, match="no such key"):
        await ann.speak(replace(view, legal=tuple(kind for kind in view.legal if kind != "PASS")))


async def test_waits_before_it_asks_again_when_everybody_has_passed() -> None:
    """Models that refuse at once do not fill the log: members wait longer each time, and ask at once while others can speak."""
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    group = launched()
    ann = ModelBrain(ScriptedModel(lambda asked: ModelError("no such key")), name="large", budget=SHORT, sleep=note)
    for _ in range(12):
        me = group.state.floor_holder
        assert me is not None
        group.say(me, await ann.speak(group.view(me)))
        group.at += timedelta(seconds=pauses[-1] if pauses else 0)
    assert pauses[:4] == [3, 3, 6, 12] and max(pauses) <= 30


async def test_a_model_may_have_nothing_to_add() -> None:
    """A pass is offered to it like any other word."""
    ann, _ = brain(decision(type="PASS", content="Bob knows more."))
    assert await ann.speak(launched().view(ANN)) == Pass(cause=PassCause.NOTHING_TO_ADD, content="Bob knows more.")


async def test_passes_when_no_time_is_left() -> None:
    """A decision that takes longer than it may is none."""
    ann, _ = brain(DISCUSS, budget=Budget(decision_timeout=timedelta(0)))
    said = await ann.speak(launched().view(ANN))
    assert isinstance(said, Pass) and said.cause is PassCause.MODEL_UNAVAILABLE
    assert ann.tally.undecided == {"speak:too_slow": 1}


def patient(state: GroupState) -> GroupState:
    """The same group, whose members have patience on their cards."""
    members = tuple(member.model_copy(update={"patience": timedelta(seconds=60)}) for member in state.members)
    return state.model_copy(update={"members": members})


async def test_replaces_half_characters() -> None:
    """A lone surrogate, which cannot be encoded, does not get into a message."""
    ann, _ = brain('{"decision": {"type": "DISCUSSION", "next_speaker": "bob", "content": "a\\ud800b"}}')
    said = await ann.speak(launched().view(ANN))
    assert isinstance(said, Discussion) and said.content.encode() == b"a?b"


async def test_reads_why_it_was_refused_and_keeps_every_choice() -> None:
    """A refusal stands in the next prompt; what is legal stays open, for there may be something new to say."""
    group = launched()
    group.say(ANN, Discussion(content="Which month?", next_speaker=BOB))
    bob, model = brain(decision(type="DISCUSSION", next_speaker="ann", content="March."))
    refusal = "You said the same in turn 1."
    said = await bob.speak(replace(group.view(BOB), refusals=(refusal,)))
    assert isinstance(said, Discussion) and said.content == "March."
    assert refusal in model.asked[0].prompt


@pytest.mark.parametrize(("uses", "kept"), [((TaskId("t1-x"),), []), ((), ["c1/t1-x/a.txt"])])
async def test_concludes_with_the_files_of_the_tasks(uses: tuple[TaskId, ...], kept: list[str]) -> None:
    """The files of tasks go with the answer, but for those that a later one made anew; or those that the model names, if any."""
    group = launched()
    for turn, text in ((1, "draft"), (2, "final")):
        task = TaskSpec(task_id=TaskId(f"t{turn}-x"), assignee=BOB, task_desc=text, uses=uses if turn == 2 else ())
        group.say(ANN, SyncTaskAssignment(tasks=(task,)))
        made = tuple(artifact(f"t{turn}-x", name, text) for name in ("a.txt", f"{text}.txt"))
        group.say(BOB, InformTaskResult(task_id=TaskId(f"t{turn}-x"), task_conclusion=text, artifacts=made), turn)
    group.say(ANN, ConcludeGroupDiscussion())
    ann, _ = brain(
        decision(type="CONCLUDE", goal_reached=True, content="It is 1234."),
        decision(type="CONCLUDE", goal_reached=False, content="No.", files=[{"name": "a.txt", "from": "t1-x"}]),
        decision(type="CONCLUDE", goal_reached=True, content="Just so.", files=[]),
    )
    said = [stated(await ann.conclude(group.view(ANN))) for _ in range(3)]
    assert [one.reason for one in said] == [Reason.CONCLUDED, Reason.FAILED, Reason.CONCLUDED]
    assert [[file.object_name for file in one.artifacts] for one in said] == [
        [*kept, "c1/t1-x/draft.txt", "c1/t2-x/a.txt", "c1/t2-x/final.txt"],
        ["c1/t1-x/a.txt"],
        [],
    ]


def drafted(*files: Artifact) -> Group:
    """A group in which bob has written a draft."""
    group = launched()
    group.say(ANN, SyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId("t1-draft"), assignee=BOB, task_desc="draft"),)))
    group.say(BOB, InformTaskResult(task_id=TaskId("t1-draft"), task_conclusion="It is 12.", artifacts=files), 1)
    return group


async def test_tasks_after_a_check_are_assigned_by_continue() -> None:
    """Tasks that use a result with `check` wait for the leader, also through others, and keep their names as ids."""
    group = launched()
    tasks = [
        {**given("bob", "total sales", "sum"), "check": True},
        given("carl", "draw them", "chart", ["sum"]),
        given("bob", "describe it", "text", ["chart"]),
        given("bob", "count rows", "rows"),
    ]
    ann, model = brain(
        decision(type="CONTINUE"),
        decision(type="ASSIGN", mode="go_on", tasks=tasks),
        decision(type="CONTINUE"),
        decision(type="CONTINUE"),
        CONCLUDE,
    )
    for turn in (1, 2):
        view = group.view(ANN)
        message = await ann.speak(view)
        group.say(ANN, message)
        group.thoughts[turn] = view.meter.thought
        assert isinstance(message, SyncTaskAssignment)
        for task in [*group.state.unfinished_tasks]:
            group.say(task.assignee, InformTaskResult(task_id=task.task_id, task_conclusion="12"), turn)
    assert "CONTINUE is not possible now" in model.asked[1].messages[-1].content
    assert "Possible now: DISCUSSION, ASSIGN, CONCLUDE, PASS, CONTINUE, INVITE, READ." in model.asked[2].prompt
    assert [(spec.task_id, spec.uses) for spec in group.specs] == [
        ("t1-sum", ()),
        ("t1-rows", ()),
        ("t2-chart", ("t1-sum",)),
        ("t2-text", ("t2-chart",)),
    ]
    announced = await ann.speak(group.view(ANN))
    assert isinstance(announced, ConcludeGroupDiscussion)
    assert "CONTINUE is not possible now" in model.asked[-1].messages[-1].content


async def test_rejects_a_result_and_gives_it_out_again() -> None:
    """The same message does both, and may use what it rejects; the log keeps the result as it was, and says why it is not taken."""
    group = drafted()
    again = [given("bob", "draft, from the second table", name="draft", uses=["t1-draft"])]
    ann, model = brain(speech([("t1-draft", "of the wrong table ")], type="ASSIGN", mode="wait", tasks=again), DISCUSS)
    group.say(ANN, await ann.speak(group.view(ANN)))
    group.say(BOB, InformTaskResult(task_id=TaskId("t2-draft"), task_conclusion="It is 13."), 2)
    await ann.speak(group.view(ANN))
    first = group.view(ANN).task(TaskId("t1-draft"))
    assert first is not None
    assert (first.outcome, first.rejected) == (TaskOutcome.REJECTED, "of the wrong table")
    told = (
        "<result m2 t1-draft done by bob>",
        "<rejected t1-draft>\nof the wrong table\n</rejected>",
        "<task t2-draft to bob uses t1-draft>",
    )
    assert [line in model.asked[1].prompt for line in told] == [True] * 3


async def test_a_rejected_result_is_no_part_of_the_answer() -> None:
    """Neither its words nor its files, whether it was rejected before or by the conclusion itself."""
    group = drafted(artifact("t1-draft", "a.txt", "12"))
    conclude = {"type": "CONCLUDE", "goal_reached": False, "content": "No figure is right."}
    ann, model = brain(
        speech([("t1-draft", "wrong")], **conclude, answer_from=[{"result": "t1-draft"}]),
        speech([("t1-draft", "wrong")], **conclude, files=[{"name": "a.txt", "from": "t1-draft"}]),
        speech([("t1-draft", "wrong")], **conclude),
    )
    group.say(ANN, await ann.speak(group.view(ANN)))
    assert isinstance(group.state.stage, Ended)
    told = ("t1-draft is no result", "t1-draft is no result")
    refused = [words in asked.prompt for words, asked in zip(told, model.asked[1:], strict=True)]
    assert (group.state.stage.artifacts, refused) == ((), [True, True])


async def test_gives_out_a_chain_by_the_names_of_one_message() -> None:
    """Names become the ids of the tasks, whatever their order; open tasks may be used as well."""
    group = with_open_task(launched())
    tasks = [
        given("carl", "draw", name="chart", uses=["the totals", "t1-1"]),
        given("bob", "add up", name="the totals"),
    ]
    ann, _ = brain(decision(type="ASSIGN", mode="go_on", tasks=tasks))
    said = await ann.speak(group.view(ANN))
    group.say(ANN, said)
    assert isinstance(said, AsyncTaskAssignment)
    totals = said.tasks[1].task_id
    assert (said.tasks[0].uses, [task.task_id for task in group.state.open_tasks]) == ((totals, "t1-1"), ["t1-1", totals])


async def test_a_conclusion_goes_with_its_announcement() -> None:
    """One message ends the group; results that it names follow word for word."""
    group = with_open_task(launched())
    group.say(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="row 1\nrow 2"), 1)
    ann, model = brain(
        decision(type="CONCLUDE", goal_reached=True, content="All rows:", answer_from=[{"result": "t1-1", "heading": "Rows"}])
    )
    group.say(ANN, await ann.speak(group.view(ANN)))
    assert isinstance(group.state.stage, Ended)
    ended = group.state.stage
    assert (ended.content, ended.reason, len(model.asked)) == ("All rows:\n\n## Rows\n\nrow 1\nrow 2", Reason.CONCLUDED, 1)


async def test_a_conclusion_without_words_is_asked_for_when_it_is_announced() -> None:
    """A model that only says that it is done writes the answer next, and then has to."""
    group = launched()
    empty = decision(type="CONCLUDE", goal_reached=True, content=" ")
    ann, model = brain(empty, empty, CONCLUDE)
    group.say(ANN, await ann.speak(group.view(ANN)))
    said = await ann.conclude(group.view(ANN))
    assert (group.state.phase, said.content, "`content` is empty" in model.asked[2].prompt) == ("concluding", "That is all.", True)


async def test_passes_the_conclusion_on_if_the_model_fails() -> None:
    """Another member can conclude; rules do not decide in the model's place."""
    group = launched()
    group.say(ANN, ConcludeGroupDiscussion())
    ann, _ = brain(ModelError("no such key"))
    assert isinstance(await ann.conclude(group.view(ANN)), Pass)


def mission() -> Mission:
    """Ann's goal."""
    return Mission("total sales, then draw charts", (), CARDS[0], 0)


async def test_searches_and_launches_with_agents_that_were_found() -> None:
    """The two tools of team formation."""
    search = WordSearch(CARDS)
    ann, model = brain(
        decision(type="search_client", needs=["statistics of CSV files", "draws charts"]),
        decision(type="launch_group_chat", members=["bob", "ann"]),
    )
    assert await ann.form_team(mission(), search) == TeamLaunch(members=(BOB,))
    assert (search.searches, "carl (model): draws charts" in model.asked[1].prompt) == (2, True)
    assert "similarity 0.65" in model.asked[1].prompt


async def test_launches_only_agents_that_were_found() -> None:
    """An invented member is refused."""
    ann, model = brain(
        decision(type="search_client", needs=["CSV"]),
        decision(type="launch_group_chat", members=["mallory"]),
        decision(type="launch_group_chat", members=["carl"]),
    )
    assert await ann.form_team(mission(), WordSearch(CARDS)) == TeamLaunch(members=(CARL,))
    assert len(model.asked) == 3


async def test_forms_no_team_without_the_model() -> None:
    """The goal is given back, so that an agent whose model answers can take it."""
    for error, is_away in ((ModelError("no such key"), True), ("what?", False)):
        ann, _ = brain(error, "what?", "what?")
        with pytest.raises(UndecidedError) as undecided:
            await ann.form_team(mission(), WordSearch(CARDS))
        assert undecided.value.is_away is is_away


async def test_acts_at_most_ten_times() -> None:
    """A model that never launches gets no more than nine searches and one forced launch."""
    number = count()
    model = ScriptedModel(lambda asked: decision(type="search_client", needs=[f"need number {next(number)}"]))
    search = WordSearch(CARDS)
    ann = ModelBrain(model, budget=SHORT)
    with pytest.raises(UndecidedError):
        await ann.form_team(mission(), search)
    assert (search.searches, ann.tally.undecided) == (9, {"form_team:useless_answer": 1})


async def test_what_was_searched_is_not_searched_again() -> None:
    """Asking discovery the same again brings nothing, and the model is told so."""
    again = decision(type="search_client", needs=["draws charts"])
    search = WordSearch(CARDS)
    ann, model = brain(again, again, decision(type="launch_group_chat", members=["carl"]))
    assert await ann.form_team(mission(), search) == TeamLaunch(members=(CARL,))
    assert (search.searches, "searched already" in model.asked[2].prompt) == (2, True)


async def test_reports_that_nobody_fits_with_why_and_who_came_nearest() -> None:
    """After one search nobody may fit, however near somebody seems; the result names needs, reason and the best of each need."""
    ann, _ = brain(decision(type="report_nobody_fits", needs=["a juggler"], why="Both only count"))
    formed = await ann.form_team(Mission("draws torches", (), CARDS[0], 0), WordSearch(CARDS))
    nearest = "Both only count. Nearest to “draws torches” is carl (similarity 0.55), which does such as “draws charts”."
    assert formed == NobodyFits(needs=("a juggler",), nearest=nearest)


@pytest.mark.parametrize(("come", "asked"), [(0, 1), (1, 2)])
async def test_who_found_nobody_is_asked_again_only_when_somebody_has_come(come: int, asked: int) -> None:
    """The same searches are made again; while they find the same agents, the model's answer stands."""
    nobody = decision(type="report_nobody_fits", needs=["a juggler"], why="Both only count")
    ann, model = brain(nobody, nobody)
    first = await ann.form_team(Mission("draws torches", (), CARDS[0], 0), WordSearch(CARDS[: len(CARDS) - come]))
    assert isinstance(first, NobodyFits)
    again = await ann.form_team(Mission("draws torches", (), CARDS[0], 0, before=first), WordSearch(CARDS))
    assert (again is first, len(model.asked)) == (not come, asked)


async def test_leads_alone_if_nobody_else_is_needed() -> None:
    """A team of nobody else is one."""
    ann, _ = brain(decision(type="launch_group_chat", members=[]))
    assert await ann.form_team(mission(), WordSearch(CARDS)) == TeamLaunch(members=())


def task_of_bob(*, may_team_up: bool, max_turns: int = 6) -> TaskView:
    """Bob's task in ann's group."""
    view = with_open_task(launched(max_turns=max_turns)).view(BOB)
    return TaskView(view.tasks[0].spec, CARDS[1].model_copy(update={"may_team_up": may_team_up}), view)


async def test_keeps_a_task_in_its_own_words() -> None:
    """The assigner's words stand."""
    bob, _ = brain(decision(type="alone"))
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == Alone("total sales")


@pytest.mark.parametrize(("may_team_up", "max_turns"), [(False, 6), (True, 2)])
async def test_asks_nothing_where_there_is_one_way(may_team_up: bool, max_turns: int) -> None:
    """A card that forbids teams, or too few turns for one, leaves nothing to decide."""
    bob, model = brain()
    assert await bob.approach(task_of_bob(may_team_up=may_team_up, max_turns=max_turns), WordSearch(CARDS)) == Alone("total sales")
    assert model.asked == []


@pytest.mark.parametrize("script", [(ModelError("no such key"),), (decision(type="team"), ModelError("no such key"))])
async def test_does_a_task_alone_if_the_model_fails(script: Sequence[str | IoaError]) -> None:
    """The assigner's words stand, and the task is done."""
    bob, _ = brain(*script)
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == Alone("total sales")


async def test_opens_a_nested_team() -> None:
    """A task can be served by a team that is formed like the first one."""
    bob, _ = brain(
        decision(type="team"),
        decision(type="search_client", needs=["draws charts"]),
        decision(type="launch_group_chat", members=["carl"]),
    )
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == TeamLaunch(members=(CARL,))


async def test_what_each_answer_cost_is_counted() -> None:
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


async def test_a_model_invites_whom_it_lacks_and_goes_on_with_it() -> None:
    """In a group that no policy leads it says for what; one is enough for a turn."""
    inviting = decision(type="INVITE", need="Speaks Frisian.")
    group = launched()
    mind, model = brain(inviting, inviting, DISCUSS)
    said = await mind.speak(group.view(ANN))
    assert said == Invite(need="Speaks Frisian.", why="Speaks Frisian.")
    group.invite(ANN, card("zoe", "speaks Frisian"))
    assert isinstance(await mind.speak(group.view(ANN)), Discussion)
    assert "INVITE is not possible now." in model.asked[2].prompt


@pytest.mark.parametrize(
    ("need", "told"),
    [(" ", "need: String should have at least 1 character"), ("y" * 2_001, "need: String should have at most 2000 characters")],
)
async def test_an_invitation_that_cannot_be_is_mended(need: str, told: str) -> None:
    """The model reads what is wrong with it."""
    mind, model = brain(decision(type="INVITE", need=need), DISCUSS)
    assert isinstance(await mind.speak(launched().view(ANN)), Discussion)
    assert told in model.asked[1].prompt
