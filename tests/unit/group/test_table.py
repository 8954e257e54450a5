"""Every kind of event in every situation of a group, as `tests/data/event_table.txt` says, apart from the table in the code."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter

from ioa.group.deadlines import next_deadline
from ioa.group.events import ControlEvent, Event, Kind, TaskDecision, TimerFired, kind_of, name_of
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Asking, Concluding, Discussing, Gathering, GroupState
from ioa.group.table import TABLE
from ioa.protocol.messages import Payload, Phase
from tests.unit.group.rules import tell
from tests.unit.group.scenario import START, Scenario, said

_FILE = Path(__file__).parents[2] / "data" / "event_table.txt"
_, _SITUATIONS, _EVENTS, _OUTCOMES = _FILE.read_text(encoding="utf-8").split("## ")
SITUATIONS = dict(line.split(": ", 1) for line in _SITUATIONS.splitlines()[1:] if line)
ENDED = ("concluded", "failed", "cancelled")
EVENTS = {line.split()[0]: line.split(maxsplit=2)[1:] for line in _EVENTS.splitlines()[1:] if line}
KINDS: dict[str, Kind] = {name_of(kind): kind for kind in (*get_args(get_args(Payload)[0]), *get_args(ControlEvent))}
KINDS |= {TaskDecision.__name__: TaskDecision}
"""Every class of message and event, by its name; what is `Said` is of the kind of its payload, but for an answer to a task."""
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_PAYLOAD: TypeAdapter[Payload] = TypeAdapter(Payload)


@cache
def story_of(situation: str) -> Scenario:
    """Return a group in a situation."""
    return tell(SITUATIONS[situation].split(" ; "))


def event_of(name: str, state: GroupState | None) -> Event:
    """The event of this kind that has the best prospects: the right sender, the right turn, the right task and time."""
    turn, stage = (state.turn, state.stage) if state is not None else (1, None)
    sender, text = EVENTS[name]
    told = json.loads(text.replace("TURN", str(turn)))
    if name == "THINKING" and isinstance(stage, Discussing | Gathering | Asking | Concluding):
        at = stage.until
    else:
        at = (state and name == "timer_fired" and next_deadline(state)) or START
    if isinstance(stage, Gathering):
        told.pop("next_speaker", None)
    if state is None or state.course is None:
        told.pop("role", None)
    if name == "question_answered":
        for other in ("turn",) if state and state.tasks else ("task_id", "number"):
            del told[other]
    if sender == "-":
        return _EVENT.validate_python({"at": at, **told})
    return said(sender, _PAYLOAD.validate_python(told), 1 if sender == "bob" else turn, at)


def what_happens(story: Scenario | None, event: Event) -> str:
    """The phase the event leads to, or the code of its rejection."""
    try:
        return (step(None, event) if story is None else step(story.state, event, story.policy)).state.phase
    except IllegalEventError as refused:
        return refused.code


def _cells() -> dict[tuple[str, str], str]:
    head, *rows = _OUTCOMES.replace("not_floor", "not_your_floor").replace(" exists", " group_exists").splitlines()[1:]
    cells = {}
    for name, *outcomes in map(str.split, rows):
        cells.update({(situation, name): outcome for situation, outcome in zip(head.split(), outcomes, strict=True)})
    return cells


CELLS = _cells()


@pytest.mark.parametrize(("situation", "name"), CELLS)
def test_event_does_in_each_situation_what_the_table_says(situation: str, name: str) -> None:
    """Each event leads to the phase, or meets the rejection, that the handwritten table names."""
    story = story_of(situation) if situation != "nothing" else None
    assert what_happens(story, event_of(name, None if story is None else story.state)) == CELLS[situation, name]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("situation", ENDED)
def test_ended_group_rejects_every_event(situation: str, name: str) -> None:
    """The terminal phases absorb every kind of event; the column of an event is found from the event alone."""
    story = story_of(situation)
    assert (story.phase, what_happens(story, event_of(name, story.state))) == (situation, "group_ended")
    assert kind_of(event_of(name, story_of("talking").state)) is KINDS[name]


def test_handwritten_table_covers_every_kind_and_phase() -> None:
    """Whoever adds a class to what travels says in both tables who sends it, when it is legal and what follows."""
    phases = {story_of(situation).phase for situation in SITUATIONS}
    assert (phases, {name for _, name in CELLS}, {row.kind for row in TABLE.values()}) == ({*Phase}, {*KINDS}, {*KINDS.values()})
    assert all(row.cells for row in TABLE.values())


def test_code_table_has_the_legal_pairs_and_no_others() -> None:
    """A pair is in the code's table exactly if the handwritten one knows a situation in which it is legal."""
    legal = {
        (story_of(situation).phase if situation != "nothing" else None, KINDS[name])
        for (situation, name), outcome in CELLS.items()
        if outcome in {*Phase}
    }
    assert {(phase, row.kind) for row in TABLE.values() for phase in row.cells} == legal


def test_state_rule_is_named_only_where_it_can_be_asked() -> None:
    """What a cell says may follow is asked where its event leads, or where a rule before it does."""
    cells = [cell for row in TABLE.values() for cell in row.cells.values()]
    assert all(rule.phases & cell.leads_to for cell in cells for rule in cell.then)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_timer_that_fires_too_early_changes_nothing(situation: str) -> None:
    """A deadline that has not come is no reason for anything, so a timer may be armed twice."""
    assert what_happens(story_of(situation), TimerFired(at=START + timedelta(seconds=1))) in ("nothing_due", "group_ended")
