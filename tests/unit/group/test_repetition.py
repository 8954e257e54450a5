"""Repetitions: which messages are refused, that the first refusal costs nothing, and that the second one leads out."""

from __future__ import annotations

import pytest

from ioa.group.events import Entry, Said
from ioa.group.lexicon import OPPOSITES
from ioa.group.rejection import RejectionCode
from ioa.group.repetition import LOOKBACK, TASKS_REMEMBERED, repeated
from ioa.group.sketch import MAX_WORDS, Sketch, opened, packed, sketch_of
from ioa.group.state import Discussing, Paused
from ioa.group.wording import wording_of
from ioa.protocol.codec import encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Discussion,
    InformTaskResult,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.group.scenario import START, Scenario, launched, said

ADA, BOB = AgentId("ada"), AgentId("bob")
PROPOSAL = "I suggest that Bob computes the totals per region from the sales file, and Eve draws a chart of them."


def _nobody(_: object) -> frozenset[int]:
    return frozenset()


def is_repetition(text: str, of: str, *, by: int = 1, of_speaker: int = 0) -> bool:
    """Whether the second speaker's text repeats the first one's."""
    heard = (sketch_of(wording_of(of), of_speaker, 1),)
    return repeated(wording_of(text), by, heard, _nobody) is not None


@pytest.mark.parametrize(
    "text",
    [
        PROPOSAL,
        PROPOSAL.upper(),
        "As Ada said, Bob computes the totals per region from the sales file and Eve draws a chart of them.",
        "Great idea! Eve could draw a chart of the totals per region, which Bob calculates from the sales file.",
        "So, just to repeat: the regional chart is drawn by Eve, and from the sales file Bob computes totals per region.",
    ],
)
def test_rephrasing_is_repetition(text: str) -> None:
    """Other words, another order and courtesy around it make nothing new."""
    assert is_repetition(text, PROPOSAL)


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("The total is 415, not 412.", "The total is 412."),
        ("We should not use Postgres for the orders.", "We should use Postgres for the orders."),
        ("Actually the meeting about the budget is on Friday.", "The meeting about the budget is on Thursday."),
        ("Correction: Bob reviews the draft of Eve.", "Eve reviews the draft of Bob."),
        ("3 of 5 tasks are done.", "2 of 5 tasks are done."),
        ("The board has approved the longer term.", "The longer term needs approval by the board."),
        ("The chart should show euros.", "Which currency should the chart show, euros or dollars?"),
        ("I will send the schema of the orders table.", "Bob, could you send the schema of the orders table?"),
        ("Agreed, Bob computes the totals per region, but he must drop refunds and test orders first.", PROPOSAL),
        ("I have finished the chapter about wind.", "I have finished the chapter about solar energy."),
        ("north 120, south 91, east 80", "north 120, south 85, east 80"),
        ("assert parse('a.csv') == 3", "assert parse('b.csv') == 7"),
        ("Bob soll die Summen je Region ausrechnen.", "Bob should compute the totals per region."),
        ("> The total is 412.\nThat leaves out the refunds of March.", "The total is 412."),
        ("Bob should review the chapter of Eve.", "Eve should review the chapter of Bob."),
    ],
)
def test_what_is_only_alike_is_no_repetition(text: str, of: str) -> None:
    """Corrections, negations, news of a status, answers, quotes with a remark, other values and languages are let through."""
    assert not is_repetition(text, of)


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("The import moved fourteen thousand rows, in batches of 2.5k, within half an hour.",
         "Within 30 minutes, in batches of 2,500, the import moved 14,000 rows."),
        ("By the twenty-first a couple of reviewers have to read the 3-page contract.",
         "Two reviewers have to read the contract of three pages by the 21st."),
        ("A trip of 40km is the same as 24.85 miles.", "40 kilometres to miles = 24.85 mi"),
    ],
)  # fmt: skip
def test_a_number_is_the_same_however_it_is_written(text: str, of: str) -> None:
    """Words, digits, multiples and units that are spelled out or not make no other message, in either direction."""
    assert (is_repetition(text, of), is_repetition(of, text)) == (True, True)


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("The import moved fourteen thousand rows in batches.", "The import moved fifteen thousand rows in batches."),
        ("The queue holds 2.4k jobs of the night.", "The queue holds 2,500 jobs of the night."),
        ("The nightly job runs at 4, 12 and 18 o'clock on both hosts.", "The nightly job runs at 4 and 18 o'clock on both hosts."),
    ],
)
def test_another_number_is_another_message(text: str, of: str) -> None:
    """Whatever way it is written."""
    assert not is_repetition(text, of)


def test_a_count_of_what_was_enumerated_is_no_other_number() -> None:
    """Who says how many there are of what stands there adds nothing; where nothing was enumerated, it does."""
    of = "The gate closes at 6:30 in the north and at 22:15 in the south, for each train to the coast."
    assert is_repetition("For each train to the coast the gate closes at two times, 6:30 in the north and 22:15 in the south.", of)
    assert not is_repetition(
        "The gate in the north closes for three trains to the coast.", "The gate in the north closes for trains to the coast."
    )


@pytest.mark.parametrize(
    ("text", "of", "is_again"),
    [
        (
            "The Lisbon warehouse ran out of paper during the strike.",
            "The warehouse in Lisbon ran out of paper during the strike.",
            True,
        ),
        (
            "In prices.csv the currency is given behind each amount.",
            "The currency in prices.csv is given behind each amount.",
            True,
        ),
        ("Please load Porto before Lisbon tonight.", "Please load Lisbon before Porto tonight.", False),
        ("Frank pays the tickets for Tom tonight.", "Tom pays the tickets for Frank tonight.", False),
    ],
)
def test_names_that_change_places_are_swapped_and_a_name_put_first_is_not(text: str, of: str, is_again: bool) -> None:
    """A name before the word it stood behind is the same; two names in each other's place are another matter."""
    assert is_repetition(text, of) is is_again


@pytest.mark.parametrize(
    ("text", "is_again"),
    [
        ("The exported invoices come in plain text and lack the customer number.", True),
        ("The exported invoices come in plain text with the customer number.", False),
    ],
)
def test_who_lacks_something_is_without_it(text: str, is_again: bool) -> None:
    """What one text denies may be lacking in the other one, but not there."""
    assert is_repetition(text, "The exported invoices come in plain text without the customer number.") is is_again


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("Let us send the parcels by rail rather than by air.", "I would send the parcels by rail instead of by air."),
        ("I was unable to open the archive of March.", "I couldn't open the archive of March."),
        ("The majority of the parcels arrive late on Mondays.", "On Mondays most of the parcels arrive late."),
        ("The harbour's cranes are what most visitors photograph.", "Most photograph the cranes of the harbour."),
    ],
)
def test_what_weighs_or_denies_in_other_words_is_repetition(text: str, of: str) -> None:
    """What both texts put in place of another thing corrects neither, and an ability that is missing is one that is denied."""
    assert is_repetition(text, of)


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (
            "All parcels have left the harbour, including those to Porto.",
            "All parcels have left the harbour, except those to Porto.",
        ),
        ("I weighed the parcels of the harbour, so you can load them.", "Could you weigh the parcels of the harbour?"),
        ("I weighed the parcels and can load them.", "I'd weigh the parcels and load them."),
        ("Should we skip the parcels that lack a stamp?", "Nine of the parcels lack a stamp."),
        ("Can the crane avoid the power line?", "The crane touches the power line."),
    ],
)
def test_what_reports_excepts_or_asks_is_no_repetition(text: str, of: str) -> None:
    """Who has done what was planned tells news, though it goes on with a plan; a question after a statement is none."""
    assert not is_repetition(text, of)


def test_whom_a_text_is_for_is_a_name() -> None:
    """The same words for another agent are another request."""
    of = "csv-reader: Sum the orders of each month and shop."
    assert is_repetition("csv-reader: For each shop and month, sum up the orders.", of)
    assert not is_repetition("plotter: Sum the orders of each month and shop.", of)


def test_who_asks_again_repeats_and_who_answers_does_not() -> None:
    """The same question in other words is a repetition, whoever asks it; what somebody proposes in reply is an answer."""
    asked = "Which currency should the axis of the chart show?"
    assert is_repetition("Could anybody tell me which currency the chart's axis should show?", asked)
    assert not is_repetition("The axis of the chart should show the currency of the invoices.", asked)


def test_a_suggestion_may_be_asked_again_and_news_of_it_asked_for() -> None:
    """What about doing it is could we do it; was it done is another question."""
    of = "Should we cache the schema of the table between two requests?"
    assert is_repetition("What about having the schema of the table cached between two requests?", of)
    assert not is_repetition("Why was the schema of the table cached between two requests?", of)


def _acknowledge(*speakers: int) -> list[bool]:
    heard: tuple[Sketch, ...] = ()
    refused = []
    for turn, speaker in enumerate(speakers):
        thanks = wording_of("Great, thank you!")
        refused.append(repeated(thanks, speaker, heard, _nobody) is not None)
        heard = (*heard, sketch_of(thanks, speaker, turn))
    return refused


@pytest.mark.parametrize(
    ("speakers", "refused"),
    [((0, 1), [False, False]), ((0, 0), [False, True]), ((0, 1, 2), [False, False, True])],
)
def test_thanks_are_said_once(speakers: tuple[int, ...], refused: list[bool]) -> None:
    """Each speaker may acknowledge once, and not a third in a row."""
    assert _acknowledge(*speakers) == refused


def test_no_word_looks_like_its_opposite() -> None:
    """A sketch keeps a byte of each word; words that mean opposite things have different ones."""
    alike = [(one, other) for one, others in OPPOSITES.items() for other in others if one & 0xFF == other & 0xFF]
    assert alike == []


def _proposed() -> Scenario:
    return launched("ada", "bob", "eve").speaks("ada", Discussion(content=PROPOSAL, next_speaker=BOB))


def _echo() -> Payload:
    return Discussion(content=f"Yes, exactly! {PROPOSAL}", next_speaker=ADA)


def test_a_repetition_is_refused_before_it_is_a_turn() -> None:
    """The refusal names whom the message repeats, since when, and what would help; the state stays as it was."""
    story = _proposed()
    refused = story.refusal(said("bob", _echo(), 2))
    assert (refused.code, refused.repeats_turn) == (RejectionCode.REPETITION, 1)
    assert refused.message == "This says again what ada said in turn 1. Give out tasks, conclude, or say something new."


def test_a_refusal_proposes_a_pause_on_what_is_open() -> None:
    """With open tasks the way out is to wait for them."""
    story = _proposed().assigns("bob", "t2-1:eve").progresses("t2-1")
    assert "pause on t2-1" in story.refusal(said("bob", _echo(), 3)).message


def test_the_first_repetition_of_a_turn_costs_nothing() -> None:
    """It is noted; the speaker keeps the floor with its deadline, and no turn is used up."""
    story = _proposed()
    noted = story.after(5).repeats_itself("bob", "m1")
    expected = story.state.stage
    assert isinstance(expected, Discussing)
    stage = expected.model_copy(update={"repeated": "m1"})
    assert noted.state == story.state.model_copy(update={"stage": stage})


def test_a_message_counts_once_however_often_it_is_sent() -> None:
    """The same message, refused by another router or sent again after a lost answer, is no second offence."""
    story = _proposed().repeats_itself("bob", "m1")
    assert story.refusal(story.log[-1]).code is RejectionCode.NO_CHANGE


def test_who_repeats_again_waits_for_the_open_tasks() -> None:
    """The second repetition of a turn uses it up for a pause on all open tasks; then the speaker has the floor again."""
    story = _proposed().assigns("bob", "t2-1:eve", "t2-2:ada").progresses("t2-1").progresses("t2-2")
    paused = story.repeats_itself("bob", "m1").repeats_itself("bob", "m2")
    assert isinstance(paused.state.stage, Paused)
    assert (paused.state.stage.triggers, paused.state.turns_taken) == (("t2-1", "t2-2"), story.state.turns_taken + 1)
    assert paused.finishes("t2-1").finishes("t2-2").holder == "bob"


def test_who_repeats_again_with_nothing_open_lets_the_owner_conclude() -> None:
    """The owner concludes, and may say that the goal was reached: nothing was cut short."""
    story = _proposed().repeats_itself("bob", "m1").repeats_itself("bob", "m2")
    assert (story.phase, story.holder) == (Phase.CONCLUDING, "ada")
    ended = story.concludes("ada")
    assert (ended.phase, ended.effects[0].result.reason) == (Phase.CONCLUDED, Reason.CONCLUDED)  # type: ignore[union-attr]


def test_a_repetition_of_another_turn_does_not_count() -> None:
    """Each turn starts with a clean slate, and what was refused in an earlier one is refused as stale."""
    story = _proposed().repeats_itself("bob", "m1").says("bob", to="ada")
    late = story.log[-2]
    assert story.refusal(late).code is RejectionCode.STALE_TURN
    assert story.repeats_itself("ada", "m2").phase is Phase.DISCUSSING


def test_only_the_holder_can_have_repeated() -> None:
    """A report about somebody else is refused."""
    story = _proposed()
    forged = story.repeats_itself("bob", "m1").log[-1].model_copy(update={"by": ADA})
    assert story.refusal(forged).code is RejectionCode.NOT_YOUR_FLOOR


def test_who_repeats_for_ever_is_passed_over() -> None:
    """A client that reports nothing but one and the same message cannot keep the floor: its time runs out."""
    story = _proposed().repeats_itself("bob", "m1")
    assert story.timer().holder == "eve"


def test_an_old_message_may_be_said_again() -> None:
    """Only the last messages count: what lies further back may be worth saying again."""
    story = _proposed().says("bob", to="ada")
    for number in range(LOOKBACK - 1):
        speaker, other = (ADA, BOB) if number % 2 == 0 else (BOB, ADA)
        assert story.refusal(said(speaker, _to(other), story.state.turn)).code is RejectionCode.REPETITION
        story = story.says(speaker, to=other)
        if story.state.turns_taken == story.state.limits.max_turns - 1:
            break
    assert len(story.state.heard) <= LOOKBACK


def _to(other: AgentId) -> Discussion:
    return Discussion(content=PROPOSAL, next_speaker=other)


def _task(task_id: str, desc: str, *, to: str = "bob", uses: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(task_id=TaskId(task_id), assignee=AgentId(to), task_desc=desc, uses=tuple(TaskId(use) for use in uses))


MEAN = "Compute the mean of the prices in sales.csv."


def _assigned() -> Scenario:
    tasks = (_task("t1-1", MEAN), _task("t1-2", "Draw a chart of the prices.", to="eve"))
    return launched("ada", "bob", "eve").speaks("ada", AsyncTaskAssignment(tasks=tasks)).progresses("t1-1").progresses("t1-2")


@pytest.mark.parametrize("desc", [MEAN, "Please calculate the average price in sales.csv!"])
def test_an_assignment_of_known_tasks_is_refused(desc: str) -> None:
    """An open task is not given out again in other words, synchronously either; nor one that is done."""
    for story in (_assigned(), _assigned().finishes("t1-1")):
        again = SyncTaskAssignment(tasks=(_task("t2-9", desc),))
        refused = story.refusal(said("ada", again, 2))
        assert (refused.code, refused.message.split(": ")[1].split(".")[0]) == (RejectionCode.REPETITION, "t2-9 is t1-1 again")


@pytest.mark.parametrize(
    "tasks",
    [
        (_task("t2-9", "Compute the median of the prices in sales.csv."),),
        (_task("t2-9", "Compute the mean of the prices in costs.csv."),),
        (_task("t2-9", MEAN, to="eve"),),
        (_task("t2-9", MEAN, uses=("t1-2",)),),
        (_task("t2-9", MEAN), _task("t2-10", "Write a report.")),
    ],
    ids=["another-word", "another-file", "another-member", "on-other-results", "with-a-new-one"],
)
def test_a_task_that_differs_is_given_out(tasks: tuple[TaskSpec, ...]) -> None:
    """Another value, assignee or input makes it another task, and one new task makes an assignment new."""
    story = _assigned().finishes("t1-2").speaks("ada", AsyncTaskAssignment(tasks=tasks))
    assert len(story.state.tasks) == 2 + len(tasks)


def test_a_failed_task_may_be_tried_again() -> None:
    """What its assignee lost is given out once more in the same words."""
    lost = InformTaskResult(task_id=TaskId("t1-1"), outcome=TaskOutcome.FAILED, task_conclusion="The file is locked.")
    again = AsyncTaskAssignment(tasks=(_task("t2-9", MEAN),))
    story = _assigned().speaks("bob", lost, turn=1).speaks("ada", again)
    assert story.open("t2-9").assignee == "bob"


def test_the_state_stays_small() -> None:
    """A thousand long messages leave sketches of the last ones: less than a kilobyte that no longer grows."""
    story = launched("ada", "bob", max_turns=1_001)
    sizes = []
    for number in range(1_000):
        speaker, other = ("ada", BOB) if number % 2 == 0 else ("bob", ADA)
        words = " ".join(f"word{(number * 200 + at) ** 2 % 99_991}x" for at in range(200))
        story = story.speaks(speaker, Discussion(content=words, next_speaker=other))
        entry = Entry(event=story.log[0], state=story.state, audience=())
        sizes.append(len(encode(entry)))
    assert len(story.state.heard) == LOOKBACK
    assert all(len(opened(packed(sketch)).words) == MAX_WORDS for sketch in story.state.heard)
    assert max(sizes) - sizes[LOOKBACK] < 100 and sum(map(len, story.state.heard)) < 500


def _with_result() -> Scenario:
    found = InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="The mean of the prices in sales.csv is 41.7 euros.")
    return _assigned().speaks("bob", found, turn=1)


def _refused(story: Scenario, content: str) -> str:
    return story.refusal(said(ADA, Discussion(content=content, next_speaker=BOB), story.state.turn)).message


def test_a_result_is_not_announced_again() -> None:
    """Who says what a result has told everybody says nothing new; the refusal names the task."""
    message = _refused(_with_result(), "So the average of the prices in sales.csv is 41.7 euros.")
    assert message == "This says again what task t1-1 came to. Give out tasks, pause on t1-2, or say something new."


def test_a_task_is_not_asked_for_again_in_the_discussion() -> None:
    """Who asks for what has been given out says nothing new while the task is open or after it was done."""
    asked = "Bob should please calculate the average price in sales.csv."
    messages = [_refused(story, asked).split(".")[0] for story in (_assigned(), _assigned().finishes("t1-1"))]
    assert messages == ["This says again what task t1-1 is about"] * 2


@pytest.mark.parametrize(
    "content",
    [
        "The mean of the prices in sales.csv is 14.7 euros.",
        "The mean of 41.7 euros is too high: sales.csv holds the refunds of March twice.",
        "How was the mean of the prices in sales.csv computed?",
        "Next I need the median of the prices in sales.csv.",
    ],
)
def test_a_result_may_be_discussed(content: str) -> None:
    """Another value, a doubt, a question and the next step go on from a result."""
    story = _with_result()
    spoken = story.speaks("ada", Discussion(content=content, next_speaker=BOB))
    assert spoken.state.turns_taken == story.state.turns_taken + 1


def test_what_failed_may_be_asked_for_again() -> None:
    """A task whose assignee failed is talked about once more."""
    lost = InformTaskResult(task_id=TaskId("t1-1"), outcome=TaskOutcome.FAILED, task_conclusion="The file is locked.")
    story = _assigned().speaks("bob", lost, turn=1)
    asked = Discussion(content="Bob should please calculate the average price in sales.csv.", next_speaker=BOB)
    assert story.speaks("ada", asked).holder == "bob"


def test_tasks_are_forgotten_too() -> None:
    """The sketches of the last tasks are kept, however many there were."""
    tasks = tuple(_task(f"t1-{number}", f"Count the sheep on meadow {number}.") for number in range(TASKS_REMEMBERED))
    story = launched("ada", "bob").speaks("ada", SyncTaskAssignment(tasks=tasks))
    for task in tasks:
        story = story.finishes(task.task_id)
    story = story.speaks("ada", SyncTaskAssignment(tasks=(_task("t2-1", "Count the goats."),)))
    assert len(story.state.given) == TASKS_REMEMBERED


def test_what_was_refused_is_not_in_the_log() -> None:
    """The entry of a refusal names the message and holds none of its text."""
    noted = _proposed().repeats_itself("bob", "m1").log[-1]
    assert not isinstance(noted, Said)
    assert noted.model_dump(exclude={"at"}) == {
        "type": "repetition_refused",
        "by": "bob",
        "turn": 2,
        "message_id": "m1",
        "repeats_turn": 1,
    }
    assert noted.at == START
