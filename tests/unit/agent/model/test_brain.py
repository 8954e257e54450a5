"""The model brain: what it makes of good answers, and what becomes of bad ones."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from structlog.testing import capture_logs

from ioa.agent.agent_metrics import repeated_messages
from ioa.agent.model import Budget, Cause, ModelBrain
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.group.events import MemberLost
from ioa.hosting.brains import open_brain
from ioa.ports.brain import Alone, Mission, NobodyFits, TaskView, Team
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.goals import Reason
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    InformTaskResult,
    Pause,
    SyncTaskAssignment,
)
from ioa.protocol.usage import Usage
from ioa.testing.scripted_model import ScriptedModel
from tests.rig.curt_brain import CurtBrain
from tests.unit.agent.model.machine_group import WordSearch
from tests.unit.agent.model.situations import ANN, BOB, CARDS, CARL, SHORT, decision, launched, with_open_task

DISCUSS = decision(type="DISCUSSION", next_speaker="bob", content="Which month?")


def brain(*script: str | IoaError | ModelAnswer, budget: Budget = SHORT) -> tuple[ModelBrain, ScriptedModel]:
    """Make a brain whose model says these lines, with the least of all brains behind it."""
    model = ScriptedModel(script)
    return ModelBrain(model, CurtBrain(), budget=budget), model


async def test_says_what_the_model_says() -> None:
    """A legal answer becomes the message."""
    ann, _ = brain(DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)


async def test_makes_the_task_ids_itself() -> None:
    """Assigned tasks bear ids made from the turn, whatever ids the model offers."""
    ann, _ = brain(decision(type="SYNC_TASK_ASSIGNMENT", tasks=[{"assignee": "bob", "task_desc": "add up", "task_id": "x.y"}]))
    said = await ann.speak(launched().view(ANN))
    assert isinstance(said, SyncTaskAssignment)
    assert [task.task_id for task in said.tasks] == ["t1-1"]


async def test_the_same_answer_in_the_same_situation_is_the_same_message() -> None:
    """Deciding again after a crash makes no new ids."""
    answer = decision(type="ASYNC_TASK_ASSIGNMENT", tasks=[{"assignee": "bob", "task_desc": "add up"}])
    ann, _ = brain(answer, answer)
    view = launched().view(ANN)
    assert await ann.speak(view) == await ann.speak(view)


async def test_numbers_the_tasks_through_all_turns() -> None:
    """No two tasks of a group bear one name, so that none passes for another attempt at an older one."""
    group = with_open_task(launched())
    ann, _ = brain(decision(type="ASYNC_TASK_ASSIGNMENT", tasks=[{"assignee": "carl", "task_desc": "draw"}]))
    said = await ann.speak(group.view(ANN))
    assert isinstance(said, AsyncTaskAssignment)
    assert said.tasks[0].task_id == "t2-2"


async def test_may_name_who_is_away_for_a_moment() -> None:
    """A member that is lost only just now is offered, and marked; after a floor's time it is out of reach."""
    group = launched()
    group.happen(MemberLost(at=group.at, agent_id=BOB))
    ann, model = brain(DISCUSS, DISCUSS, decision(type="CONCLUDE_GROUP_DISCUSSION"))
    said = await ann.speak(group.view(ANN))
    group.at += timedelta(seconds=61)
    later = await ann.speak(group.view(ANN))
    prompts = [asked.prompt for asked in model.asked]
    assert (said, later) == (Discussion(content="Which month?", next_speaker=BOB), ConcludeGroupDiscussion())
    assert ("bob: computes statistics of CSV files [away for a moment" in prompts[0], "[out of reach]" in prompts[1]) == (
        True,
        True,
    )


async def test_pauses_on_open_tasks() -> None:
    """Triggers are ids of open tasks, each once."""
    ann, _ = brain(decision(type="PAUSE", triggers=["t1-1", "t1-1"]))
    assert await ann.speak(with_open_task(launched()).view(ANN)) == Pause(triggers=("t1-1",))


async def test_an_answer_that_was_cut_is_asked_again_with_twice_the_room() -> None:
    """However well the beginning of an answer reads, half of it is not taken for the whole."""
    half = decision(type="DISCUSSION", next_speaker="bob", content="Which")
    ann, model = brain(ModelAnswer(half, complete=False), DISCUSS)
    assert await ann.speak(launched().view(ANN)) == Discussion(content="Which month?", next_speaker=BOB)
    assert [asked.limits.max_tokens for asked in model.asked] == [SHORT.answer_tokens, 2 * SHORT.answer_tokens]
    assert model.asked[0].messages == model.asked[1].messages


async def test_falls_back_when_every_answer_was_cut() -> None:
    """The cause is told apart from an answer that was useless."""
    ann, _ = brain(*[ModelAnswer(DISCUSS, complete=False)] * 3)
    assert await ann.speak(launched().view(ANN)) == await CurtBrain().speak(launched().view(ANN))
    assert ann.tally.summary()["fallbacks"] == {"speak:cut": 1}


async def test_a_process_that_used_a_model_ends_with_its_counts_in_the_log() -> None:
    """The counts are plain values, whatever was counted."""
    environment = {"IOA_LLM_BASE_URL": "http://127.0.0.1:9/v1", "IOA_LLM_MODEL": "tiny"}
    with capture_logs() as lines:
        async with open_brain(environment) as opened:
            assert isinstance(opened, ModelBrain)
            opened.tally.decisions["speak"] += 2
            opened.tally.fell_back("speak", Cause.TOO_SLOW, "it took long")
    [line] = [line for line in lines if line["event"] == "model_served"]
    assert (line["model"], line["decisions"], line["fallbacks"]) == ("tiny", {"speak": 2}, {"speak:too_slow": 1})


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{DISCUSS}\n```",
        f"<think>{{'a': 1}} hm {{</think>Sure! Here it is: {DISCUSS} Anything else?",
        f"In set notation {{bob}} is next. {DISCUSS}",
        DISCUSS.replace("}", ', "why": "extra"}', 1),
        DISCUSS[:-2],
    ],
)
async def test_finds_the_answer_in_what_surrounds_it(text: str) -> None:
    """Fences, thoughts, prose, extra fields and a missing end do no harm."""
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
        "I'm sorry, but I can't help with that.",
        "tic tac " * 20_000,
        decision(type="DISCUSSION", next_speaker="mallory", content="hi"),
        decision(type="DISCUSSION", next_speaker="ann", content="talking to myself"),
        decision(type="DISCUSSION", next_speaker="bob", content="   "),
        decision(type="CONCLUSION", content="too early"),
        decision(type="PAUSE", triggers=["t1-1"]),
        decision(type="SYNC_TASK_ASSIGNMENT", tasks=[]),
        decision(type="SYNC_TASK_ASSIGNMENT", tasks=[{"assignee": "nobody", "task_desc": "x"}]),
    ],
)
async def test_repairs_twice_and_then_falls_back(text: str) -> None:
    """A useless answer goes back to the model with what is wrong, and after two rounds the other brain decides."""
    ann, model = brain(text, text, text)
    with capture_logs() as logs:
        said = await ann.speak(launched().view(ANN))
    assert said == ConcludeGroupDiscussion()
    assert [(len(asked.messages), asked.messages[-1].role) for asked in model.asked] == [(2, "user"), (4, "user"), (4, "user")]
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


async def test_cuts_texts_that_are_too_long() -> None:
    """An over-long content is cut at its limit instead of refused."""
    ann, model = brain(decision(type="DISCUSSION", next_speaker="bob", content="word " * 1_000))
    said = await ann.speak(launched().view(ANN))
    assert len(said.content) <= SHORT.content_chars
    assert len(model.asked) == 1


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
    """The model writes the conclusion and says whether the goal was reached."""
    group = with_open_task(launched())
    group.say(BOB, InformTaskResult(task_id=group.state.open_tasks[0].task_id, task_conclusion="1234"), 1)
    group.say(ANN, ConcludeGroupDiscussion())
    ann, model = brain(decision(type="CONCLUSION", goal_reached=False, content="It is 1234."))
    said = await ann.conclude(group.view(ANN))
    assert (said.content, said.reason) == ("It is 1234.", Reason.FAILED)
    assert "1234" in model.asked[0].prompt


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


async def test_a_repeated_search_leaves_only_the_launch() -> None:
    """Asking discovery the same again brings nothing, so the model has to launch."""
    again = decision(type="search_client", needs=["draws charts"])
    search = WordSearch(CARDS)
    ann, model = brain(again, again, decision(type="launch_group_chat", members=["carl"]))
    assert await ann.form_team(mission(), search) == Team(members=(CARL,))
    assert (search.searches, "search_client" in json.dumps(model.asked[2].shape.model_json_schema())) == (2, False)


async def test_does_not_give_up_on_a_goal_whose_own_words_find_somebody() -> None:
    """A poor wording of the needs is not taken for the lack of an agent."""
    ann, _ = brain(
        decision(type="search_client", needs=["juggle torches"]),
        *[decision(type="report_nobody_fits")] * 3,
    )
    formed = await ann.form_team(Mission("draws charts", (), CARDS[0], 0), WordSearch(CARDS, least_similarity=0.2))
    assert (formed, ann.tally.fallbacks) == (Team(members=(CARL,)), {("form_team", Cause.USELESS_ANSWER): 1})


async def test_reports_the_need_that_nobody_serves() -> None:
    """Giving up is possible for needs without a good hit, and names them."""
    ann, _ = brain(decision(type="search_client", needs=["juggle torches"]), decision(type="report_nobody_fits"))
    assert await ann.form_team(mission(), WordSearch(CARDS, least_similarity=0.2)) == NobodyFits(needs=("juggle torches",))


def task_of_bob(*, may_team_up: bool) -> TaskView:
    """Bob's task in ann's group."""
    view = with_open_task(launched()).view(BOB)
    return TaskView(view.tasks[0].spec, CARDS[1].model_copy(update={"may_team_up": may_team_up}), view)


async def test_rewrites_a_task() -> None:
    """The assignee's function is told the task in the model's words."""
    bob, _ = brain(decision(type="alone", task_desc="add up the column sales of sales.csv"))
    assert await bob.approach(task_of_bob(may_team_up=False), WordSearch(CARDS)) == Alone("add up the column sales of sales.csv")


async def test_keeps_a_task_in_its_own_words() -> None:
    """An empty rewriting passes the task on as it was given."""
    bob, _ = brain(decision(type="alone", task_desc=" "))
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == Alone("total sales")


async def test_opens_a_nested_team() -> None:
    """A task can be served by a team that is formed like the first one."""
    bob, _ = brain(
        decision(type="team"),
        decision(type="search_client", needs=["draws charts"]),
        decision(type="launch_group_chat", members=["carl"]),
    )
    assert await bob.approach(task_of_bob(may_team_up=True), WordSearch(CARDS)) == Team(members=(CARL,))


async def test_does_not_team_up_where_that_is_not_allowed() -> None:
    """A card that forbids teams leaves only one way."""
    bob, model = brain(decision(type="team"), decision(type="alone", task_desc="add up"))
    assert await bob.approach(task_of_bob(may_team_up=False), WordSearch(CARDS)) == Alone("add up")
    assert len(model.asked) == 2


async def test_what_each_answer_cost_is_counted() -> None:
    """Useless answers and repairs cost as well; the price is that of a million tokens."""
    priced = replace(SHORT, prompt_price=2.0, answer_price=10.0)
    ann, _ = brain(ModelAnswer("what?", prompt_tokens=50, answer_tokens=3), ModelAnswer(DISCUSS, prompt_tokens=70), budget=priced)
    view = launched().view(ANN)
    await ann.speak(view)
    assert view.meter.total == Usage(tokens_in=120, tokens_out=3, cost_micros=2 * 120 + 10 * 3)
