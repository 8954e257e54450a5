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

from ioa.agent.agent_metrics import repeated_messages
from ioa.agent.model import Budget, Cause, ModelBrain
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.group.events import MemberLost
from ioa.hosting.brains import open_mind
from ioa.ports.brain import Alone, Mission, NobodyFits, TaskView, Team
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    InformTaskResult,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.usage import Usage
from ioa.testing.scripted_model import ScriptedModel
from tests.rig.curt_brain import CurtBrain
from tests.unit.agent.model.machine_group import WordSearch
from tests.unit.agent.model.situations import ANN, BOB, CARDS, CARL, SHORT, decision, launched, with_open_task

DISCUSS = decision(type="DISCUSSION", next_speaker="bob", content="Which month?")
CONCLUDE = decision(type="CONCLUDE", goal_reached=True, content="That is all.")


def given(assignee: str, task_desc: str, name: str = "", uses: Sequence[str] = ()) -> dict[str, object]:
    """One task of an assignment."""
    return {"name": name, "assignee": assignee, "task_desc": task_desc, "uses": list(uses)}


def artifact(task_id: str, name: str, text: str) -> Artifact:
    """A file of a task, by reference."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Artifact(name=name, object_name=f"c1/{task_id}/{name}", size_bytes=len(text), sha256=digest, media_type="text/plain")


def brain(*script: str | IoaError | ModelAnswer, budget: Budget = SHORT) -> tuple[ModelBrain, ScriptedModel]:
    """Make a brain whose model says these lines, with the least of all brains behind it."""
    model = ScriptedModel(script)
    return ModelBrain(model, CurtBrain(), budget=budget), model


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
    later = await ann.speak(group.view(ANN))
    prompts = [asked.prompt for asked in model.asked]
    assert (said, later) == (Discussion(content="Which month?", next_speaker=BOB), ConcludeGroupDiscussion())
    told = ("Away for a moment, may be given tasks: bob." in prompts[0], "Out of reach: bob." in prompts[1])
    assert (told, "`bob` is out of reach; in reach are `carl`." in prompts[2]) == ((True, True), True)


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


async def test_falls_back_when_every_answer_was_cut() -> None:
    """The cause is told apart from an answer that was useless."""
    ann, _ = brain(*[ModelAnswer(DISCUSS, finish="length")] * 4)
    assert await ann.speak(launched().view(ANN)) == await CurtBrain().speak(launched().view(ANN))
    assert ann.tally.summary()["fallbacks"] == {"speak:cut": 1}


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
            accepted += [end] if not ann.tally.fallbacks else []
    assert accepted == []


async def test_a_process_that_used_a_model_ends_with_its_counts_in_the_log() -> None:
    """The counts are plain values, whatever was counted."""
    environment = {"IOA_LLM_BASE_URL": "http://127.0.0.1:9/v1", "IOA_LLM_MODEL": "tiny"}
    with capture_logs() as lines:
        async with open_mind(environment) as opened:
            assert isinstance(opened.brain, ModelBrain) and opened.chat is not None
            opened.brain.tally.decisions["speak"] += 2
            opened.brain.tally.fell_back("speak", Cause.TOO_SLOW, "it took long")
    [line] = [line for line in lines if line["event"] == "model_served"]
    assert (line["model"], line["decisions"], line["fallbacks"]) == ("tiny", {"speak": 2}, {"speak:too_slow": 1})


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
        "{",
        "{" * 50_000,
        '{"decision":' * 50_000,
        "null",
        "[1, 2]",
        '{"decision": null}',
        DISCUSS[:40],
        DISCUSS[:-2],
        "I'm sorry, but I can't help with that.",
        "tic tac " * 20_000,
        decision(type="DISCUSSION", next_speaker="mallory", content="hi"),
        decision(type="DISCUSSION", next_speaker="ann", content="talking to myself"),
        decision(type="DISCUSSION", next_speaker="bob", content="   "),
        decision(type="DISCUSSION", next_speaker="bob", content="word " * 40_000),
        decision(type="CONCLUDE", goal_reached=True, content=" "),
        decision(type="CONCLUDE", goal_reached=True, content="so", answer_from=["t9-x"]),
        decision(type="CONCLUDE", goal_reached=True, content="so", files=["t9-x/a.txt"]),
        decision(type="PAUSE", triggers=["t1-1"]),
        decision(type="ASSIGN", mode="wait", tasks=[]),
        decision(type="ASSIGN", mode="wait", tasks=[given("nobody", "x")]),
        decision(type="ASSIGN", mode="wait", tasks=[given("bob", " ")]),
        decision(type="ASSIGN", mode="wait", tasks=[given("bob", "x", uses=["t9-x"])]),
        decision(type="ASSIGN", mode="wait", tasks=[given("bob", "x", name="a"), given("bob", "y", uses=["a"])]),
        decision(type="ASSIGN", mode="wait", tasks=[given("bob", f"x{number}") for number in range(33)]),
    ],
)
async def test_repairs_twice_and_then_falls_back(text: str) -> None:
    """A useless answer goes back to the model with what is wrong, and after two rounds the other brain decides."""
    ann, model = brain(text, text, text)
    with capture_logs() as logs:
        said = await ann.speak(launched().view(ANN))
    assert said == ConcludeGroupDiscussion()
    assert [(len(asked.messages), asked.messages[-1].role) for asked in model.asked] == [(2, "user"), (4, "user"), (6, "user")]
    assert "cannot be used" in model.asked[1].messages[-1].content
    assert ann.tally.fallbacks == {("speak", Cause.USELESS_ANSWER): 1}
    assert [(log["event"], log["decision"], log["cause"]) for log in logs if log["log_level"] == "warning"] == [
        ("model_fallback", "speak", "useless_answer")
    ]


async def test_takes_a_repaired_answer() -> None:
    """The second answer counts if the first was useless."""
    ann, _ = brain(decision(type="DISCUSSION", next_speaker="bo", content="hi"), DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert (ann.tally.repairs, dict(ann.tally.fallbacks)) == (1, {})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (decision(type="DISCUSSION", next_speaker="writter", content="hi"), "`writter` is no member; members are `bob`, `carl`."),
        (decision(type="DISCUSSION", next_speaker="ann", content="hi"), "`ann` is you, and `next_speaker` another member"),
        (
            decision(type="PAUSE", triggers=["t1-1"]),
            "PAUSE is closed now: no task is open. Open: DISCUSSION, ASSIGN, CONCLUDE",
        ),
        (decision(type="ASSIGN", mode="wait", tasks=[given("bob", "x", uses=["t9"])]), "names tasks that are done: none are yet."),
    ],
)
async def test_is_told_what_would_be_legal(answer: str, told: str) -> None:
    """An answer that is not legal comes back with a sentence that names what is, and nothing is guessed in its place."""
    ann, model = brain(answer, DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert told in model.asked[1].messages[-1].content


@pytest.mark.parametrize(
    ("error", "cause"), [(UnavailableError("down"), Cause.UNAVAILABLE), (ModelError("no such model"), Cause.REFUSED)]
)
async def test_falls_back_at_once_when_the_model_fails(error: IoaError, cause: Cause) -> None:
    """There is nothing to repair when no answer comes."""
    ann, model = brain(error)
    assert await ann.speak(launched().view(ANN)) == ConcludeGroupDiscussion()
    assert (len(model.asked), ann.tally.fallbacks) == (1, {("speak", cause): 1})


async def test_a_decision_of_the_rules_is_counted_where_the_message_tells_its_cost() -> None:
    """Whoever reads the group's log sees that the model did not decide; what the model decided counts as nothing of the kind."""
    asked: list[int] = []
    for answer in (UnavailableError("down"), DISCUSS):
        ann, _ = brain(answer)
        view = launched().view(ANN)
        await ann.speak(view)
        asked.append(view.meter.take().fallbacks)
    goal = mission()
    ann, _ = brain(UnavailableError("down"))
    await ann.form_team(goal, WordSearch(CARDS))
    assert (asked, goal.meter.take().fallbacks) == ([1, 0], 1)


async def test_falls_back_when_no_time_is_left() -> None:
    """A decision that takes longer than its share is taken by the other brain."""
    ann, _ = brain(DISCUSS, budget=Budget(decision_timeout=timedelta(0)))
    assert await ann.speak(launched().view(ANN)) == ConcludeGroupDiscussion()
    assert ann.tally.fallbacks == {("speak", Cause.TOO_SLOW): 1}


async def test_replaces_half_characters() -> None:
    """A lone surrogate, which cannot be encoded, does not get into a message."""
    ann, _ = brain('{"decision": {"type": "DISCUSSION", "next_speaker": "bob", "content": "a\\ud800b"}}')
    said = await ann.speak(launched().view(ANN))
    assert said.content.encode() == b"a?b"


async def test_reads_why_it_was_refused_and_keeps_every_choice() -> None:
    """A refusal stands in the next prompt; what is legal stays open, for there may be something new to say."""
    group = launched()
    group.say(ANN, Discussion(content="Which month?", next_speaker=BOB))
    bob, model = brain(decision(type="DISCUSSION", next_speaker="ann", content="March."))
    refusal = "You said the same in turn 1."
    assert (await bob.speak(replace(group.view(BOB), refusals=(refusal,)))).content == "March."
    assert refusal in model.asked[0].prompt


@pytest.mark.parametrize(("content", "told"), [("Is it March?", False), ("Let us vote.", True)])
async def test_is_told_that_it_has_said_what_had_been_said(content: str, told: bool) -> None:
    """Voting and consenting in the same words is legal; the speaker reads a line about it, and it is counted."""
    group, before = launched(), repeated_messages._value.get()
    group.say(ANN, Discussion(content=content, next_speaker=BOB))
    group.say(BOB, Discussion(content=" let us VOTE", next_speaker=ANN))
    group.say(ANN, Discussion(content="And then?", next_speaker=BOB))
    bob, model = brain(decision(type="DISCUSSION", next_speaker="ann", content="March."))
    await bob.speak(group.view(BOB))
    counted = repeated_messages._value.get() - before
    assert ("said word for word what ann had said before" in model.asked[0].prompt, counted) == (told, told)


async def test_concludes_with_the_files_of_the_tasks() -> None:
    """The newest file of each name goes with the answer, or those that the model names."""
    group = launched()
    for turn, text in ((1, "draft"), (2, "final")):
        group.say(ANN, SyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId(f"t{turn}-x"), assignee=BOB, task_desc=text),)))
        made = tuple(artifact(f"t{turn}-x", name, text) for name in ("a.txt", f"{text}.txt"))
        group.say(BOB, InformTaskResult(task_id=TaskId(f"t{turn}-x"), task_conclusion=text, artifacts=made), turn)
    group.say(ANN, ConcludeGroupDiscussion())
    ann, _ = brain(
        decision(type="CONCLUDE", goal_reached=True, content="It is 1234."),
        decision(type="CONCLUDE", goal_reached=False, content="No.", files=["t1-x/a.txt"]),
    )
    said = [await ann.conclude(group.view(ANN)) for _ in range(2)]
    assert [(one.content, one.reason) for one in said] == [("It is 1234.", Reason.CONCLUDED), ("No.", Reason.FAILED)]
    assert [[file.object_name for file in one.artifacts] for one in said] == [
        ["c1/t2-x/a.txt", "c1/t1-x/draft.txt", "c1/t2-x/final.txt"],
        ["c1/t1-x/a.txt"],
    ]


async def test_who_announces_a_conclusion_has_written_it() -> None:
    """One question brings the announcement and the conclusion; results that it names follow word for word."""
    group = with_open_task(launched())
    group.say(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="row 1\nrow 2"), 1)
    ann, model = brain(decision(type="CONCLUDE", goal_reached=True, content="All rows:", answer_from=["t1-1"]))
    group.say(ANN, await ann.speak(group.view(ANN)))
    said = await ann.conclude(group.view(ANN))
    assert (said.content, said.reason, len(model.asked)) == ("All rows:\n\nrow 1\nrow 2", Reason.CONCLUDED, 1)


async def test_a_conclusion_that_was_refused_is_asked_for_anew() -> None:
    """What was written at the announcement is stated once; after a refusal the model reads why and writes it again."""
    group = launched()
    ann, model = brain(CONCLUDE, decision(type="CONCLUDE", goal_reached=True, content="Shorter."))
    group.say(ANN, await ann.speak(group.view(ANN)))
    said = [await ann.conclude(group.view(ANN)), await ann.conclude(replace(group.view(ANN), refusals=("It is too long.",)))]
    assert ([one.content for one in said], "It is too long." in model.asked[1].prompt) == (["That is all.", "Shorter."], True)


async def test_concludes_by_the_other_brain_if_the_model_fails() -> None:
    """A conclusion is made without the model too."""
    ann, _ = brain(UnavailableError("down"))
    assert (await ann.conclude(launched().view(ANN))).reason is Reason.CONCLUDED


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
    assert await ann.form_team(mission(), search) == Team(members=(BOB,))
    assert (search.searches, "carl: draws charts" in model.asked[1].prompt) == (2, True)
    assert "similarity 0.65 · not tried yet" in model.asked[1].prompt


async def test_launches_only_agents_that_were_found() -> None:
    """An invented member is refused."""
    ann, model = brain(
        decision(type="search_client", needs=["CSV"]),
        decision(type="launch_group_chat", members=["mallory"]),
        decision(type="launch_group_chat", members=["carl"]),
    )
    assert await ann.form_team(mission(), WordSearch(CARDS)) == Team(members=(CARL,))
    assert len(model.asked) == 3


async def test_launches_with_the_best_if_the_model_fails_after_a_search() -> None:
    """What the searches brought is not thrown away."""
    ann, _ = brain(decision(type="search_client", needs=["statistics of CSV files"]), "?", "?", "?")
    assert await ann.form_team(mission(), WordSearch(CARDS)) == Team(members=(CARL, BOB))
    assert ann.tally.fallbacks == {("form_team", Cause.USELESS_ANSWER): 1}


async def test_acts_at_most_ten_times() -> None:
    """A model that never launches gets no more than nine searches and one forced launch."""
    number = count()
    model = ScriptedModel(lambda asked: decision(type="search_client", needs=[f"need number {next(number)}"]))
    search = WordSearch(CARDS)
    ann = ModelBrain(model, CurtBrain(), budget=SHORT)
    assert isinstance(await ann.form_team(mission(), search), Team)
    assert (search.searches, ann.tally.fallbacks) == (9, {("form_team", Cause.USELESS_ANSWER): 1})


async def test_what_was_searched_is_not_searched_again() -> None:
    """Asking discovery the same again brings nothing, and the model is told so."""
    again = decision(type="search_client", needs=["draws charts"])
    search = WordSearch(CARDS)
    ann, model = brain(again, again, decision(type="launch_group_chat", members=["carl"]))
    assert await ann.form_team(mission(), search) == Team(members=(CARL,))
    assert (search.searches, "searched already" in model.asked[2].prompt) == (2, True)


async def test_reports_that_nobody_fits_with_why_and_who_came_nearest() -> None:
    """After one search nobody may fit, however near somebody seems; the result names needs, reason and the best of each need."""
    ann, _ = brain(decision(type="report_nobody_fits", needs=["a juggler"], why="Both only count"))
    formed = await ann.form_team(Mission("draws torches", (), CARDS[0], 0), WordSearch(CARDS))
    nearest = "Both only count. Nearest to “draws torches” is carl (similarity 0.55), which does such as “draws charts”."
    assert formed == NobodyFits(needs=("a juggler",), nearest=nearest)


async def test_leads_alone_if_nobody_else_is_needed() -> None:
    """A team of nobody else is one."""
    ann, _ = brain(decision(type="launch_group_chat", members=[]))
    assert await ann.form_team(mission(), WordSearch(CARDS)) == Team(members=())


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


async def test_opens_a_nested_team() -> None:
    """A task can be served by a team that is formed like the first one."""
    bob, _ = brain(
        decision(type="team"),
        decision(type="search_client", needs=["draws charts"]),
        decision(type="launch_group_chat", members=["carl"]),
    )
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == Team(members=(CARL,))


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
