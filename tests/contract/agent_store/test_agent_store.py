"""An agent's memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.agent_memory import MAX_REMEMBERED_BYTES, Encounter, Passage, StoredObservation, StoredSummary
from ioa.adapters.sqlite_store import SqliteStore
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended
from ioa.protocol.ids import CommId, MessageId, SessionId, TaskId
from ioa.protocol.outcomes import REMEMBERED, Outcome
from tests.contract.agent_store.stories import message, result, sequenced
from tests.unit.group.scenario import COMM, START, card

OTHER = CommId("another-room")
T1 = TaskId("t1")
BOB = "bob"
AfterKill = Callable[[], Awaitable[SqliteStore]]


def met(agent_id: str, *, done: int = 0, failed: int = 0) -> Encounter:
    """An agent that has done some tasks and failed at others."""
    went = [True] * done + [False] * failed
    return Encounter(
        card(agent_id),
        tuple(Outcome(pool=agent_id, agent_id=agent_id, need="work", done=one, at=START, seconds=1.5) for one in went),
    )


@pytest.mark.parametrize("wrong", [0, 2], ids=["the first again", "one behind a gap"])
async def test_an_entry_that_is_not_next_changes_nothing(store: SqliteStore, wrong: int) -> None:
    """A duplicate and an entry behind a gap are both refused, and the cursor stays."""
    story = sequenced()
    await store.append(story[0])

    refused = await store.append(story[wrong])

    assert (refused, await store.entries(COMM), await store.append(story[1])) == (False, story[:1], True)


async def test_what_was_seen_last_is_kept_for_its_group(store: SqliteStore) -> None:
    """It takes the place of what was seen before, and goes with its group; half of a character does no harm."""
    await store.put_observation(COMM, StoredObservation(1, "a cat"))
    await store.put_observation(COMM, StoredObservation(2, "two cats"))
    kept = (await store.observation(COMM), await store.observation(OTHER))
    await store.put_observation(OTHER, StoredObservation(1, "half a cat: \ud83d"))
    await store.forget_group(COMM)
    gone = await store.observation(COMM)
    await store.forget_groups()

    assert (kept, gone, await store.observation(OTHER)) == ((StoredObservation(2, "two cats"), None), None, None)


async def test_what_was_thought_in_each_turn_is_kept_for_its_group(store: SqliteStore) -> None:
    """A second thought takes the place of the first one of its turn, and all of them go with their group."""
    for turn, thought in ((1, "ask bob"), (3, "wait"), (3, "conclude: \ud83d")):
        await store.put_thought(COMM, turn, thought)
    await store.put_thought(OTHER, 1, "elsewhere")
    kept = await store.thoughts(COMM)
    await store.forget_group(COMM)
    left = (await store.thoughts(COMM), await store.thoughts(OTHER))
    await store.forget_groups()

    assert (kept[1], kept[3].startswith("conclude"), left) == ("ask bob", True, ({}, {1: "elsewhere"}))
    assert await store.thoughts(OTHER) == {}


async def test_a_duty_has_one_message(store: SqliteStore) -> None:
    """The first message under a duty of a group is stored; a later call returns the first message."""
    kept = [await store.put_outgoing("turn:1", message(message_id)) for message_id in ("m1", "m2")]

    assert (kept, await store.outgoing(COMM)) == ([message("m1")] * 2, {"turn:1": message("m1")})
    assert await store.outgoing(OTHER) == {}


async def test_dropping_an_answered_message_leaves_its_successor(store: SqliteStore) -> None:
    """What was put under a duty after the answered message stays."""
    await store.put_outgoing("turn:1", message("m1"))
    await store.drop_outgoing(COMM, MessageId("m1"))
    await store.put_outgoing("turn:1", message("m2"))

    await store.drop_outgoing(COMM, MessageId("m1"))
    kept = (await store.outgoing(COMM)).get("turn:1")
    await store.drop_outgoing(COMM, MessageId("m2"))

    assert (kept, (await store.outgoing(COMM)).get("turn:1")) == (message("m2"), None)


async def test_the_end_of_a_group_forgets_what_was_to_be_said_in_it(store: SqliteStore) -> None:
    """The entry that ends a group empties its outbox, and no other group's."""
    await store.put_outgoing("turn:9", message("m1"))
    await store.put_outgoing("turn:9", message("m2", comm_id=OTHER))

    for entry in sequenced():
        await store.append(entry)

    left = ((await store.outgoing(COMM)).get("turn:9"), (await store.outgoing(OTHER)).get("turn:9"))
    assert left == (None, message("m2", comm_id=OTHER))


@pytest.mark.parametrize("told", [True, False])
async def test_the_end_of_a_group_forgets_its_tasks(store: SqliteStore, told: bool) -> None:
    """Whether it is told of its end or not, nobody asks for a result of it any more; those of other groups stay."""
    story = sequenced()
    await _apply(store, COMM, story[:-1])
    for comm_id in (COMM, OTHER):
        await store.begin_task(comm_id, T1)
        await store.finish_task(comm_id, result("done"))
    await (_apply(store, COMM, story[-1:]) if told else store.end_group(COMM, START))

    assert [await store.finished_task(comm_id, T1) for comm_id in (COMM, OTHER)] == [None, result("done")]
    assert [await store.begin_task(comm_id, T1) for comm_id in (COMM, OTHER)] == [1, 2]


async def test_attempts_at_a_task_are_counted(store: SqliteStore) -> None:
    """Each beginning is one attempt more, for each task and group apart."""
    attempts = [await store.begin_task(comm_id, T1) for comm_id in (COMM, COMM, OTHER, COMM)]

    assert attempts == [1, 2, 1, 3]


async def test_the_first_result_of_a_task_stands(store: SqliteStore) -> None:
    """A journalled result is never replaced."""
    await store.begin_task(COMM, T1)
    before = await store.finished_task(COMM, T1)
    await store.finish_task(COMM, result("first"))
    await store.finish_task(COMM, result("second"))

    assert (before, await store.finished_task(COMM, T1)) == (None, result("first"))


async def test_others_are_remembered_once_for_each_group(store: SqliteStore) -> None:
    """Two groups with the same agent add up, with its last card; one group counts once, and an unknown group does not count."""
    newer = card("bob").model_copy(update={"version": "2"})
    news = [await store.meet(COMM, [met("bob", done=1)])]
    for comm_id in (COMM, OTHER):
        await _apply(store, comm_id, sequenced())
    news += [
        await store.meet(COMM, [met("bob", done=2, failed=1), met("cy", failed=3)]),
        await store.meet(COMM, [met("bob", done=2, failed=1)]),
        await store.meet(OTHER, [replace(met("bob", done=1), card=newer), met("eve", done=5)]),
    ]

    known = await store.contacts()
    assert [(one.card, one.tasks_done, one.tasks_failed) for one in known] == [
        (card("eve"), 5, 0),
        (newer, 3, 1),
        (card("cy"), 0, 3),
    ]
    assert (news, known[1].outcomes) == (
        [False, True, False, True],
        (*met("bob", done=2, failed=1).outcomes, *met("bob", done=1).outcomes),
    )


async def test_the_last_outcomes_of_an_agent_are_kept(store: SqliteStore) -> None:
    """All tasks are counted, and the newest of them kept as they were."""
    outcomes = [Outcome(pool=BOB, agent_id=BOB, need=f"task {n}", done=True, at=START, seconds=n) for n in range(REMEMBERED + 10)]
    for comm_id, part in ((COMM, outcomes[:40]), (OTHER, outcomes[40:])):
        await _apply(store, comm_id, sequenced()[:1])
        await store.meet(comm_id, [Encounter(card("bob"), tuple(part))])

    [bob] = await store.contacts()
    assert (bob.tasks_done, bob.outcomes) == (REMEMBERED + 10, tuple(outcomes[10:]))


def _in(comm_id: CommId, entries: Sequence[SequencedEntry]) -> list[SequencedEntry]:
    """The same entries in another group."""
    states = [entry.entry.state.model_copy(update={"comm_id": comm_id}) for entry in entries]
    return [
        entry.model_copy(update={"entry": entry.entry.model_copy(update={"state": state})})
        for entry, state in zip(entries, states, strict=True)
    ]


async def _apply(store: SqliteStore, comm_id: CommId, entries: Sequence[SequencedEntry]) -> None:
    for entry in _in(comm_id, entries):
        assert await store.append(entry)


async def test_groups_that_ended_long_ago_are_forgotten(store: SqliteStore) -> None:
    """Entries and tasks of a group go when it ended before the instant; open groups, contacts and newer ones stay."""
    story = sequenced()
    stage = story[-1].entry.state.stage
    assert isinstance(stage, Ended)
    await _apply(store, COMM, story)
    await _apply(store, OTHER, story[:-1])
    for comm_id in (COMM, OTHER):
        await store.begin_task(comm_id, T1)
        await store.finish_task(comm_id, result("done"))
        await store.meet(comm_id, [met("bob", done=1)])
    forgotten = [await store.prune(stage.ended_at), await store.prune(stage.ended_at + timedelta(seconds=1))]

    assert (forgotten, [len(await store.entries(comm_id)) for comm_id in (COMM, OTHER)]) == ([0, 1], [0, len(story) - 1])
    assert [await store.finished_task(comm_id, T1) for comm_id in (COMM, OTHER)] == [None, result("done")]
    assert [await store.begin_task(comm_id, T1) for comm_id in (COMM, OTHER)] == [1, 2]
    assert [contact.tasks_done for contact in await store.contacts()] == [2]


async def test_group_with_unreported_end_is_removed_like_an_ended_group(store: SqliteStore) -> None:
    """Who was removed hears nothing any more: its group goes in its time, and at once what was to be said in it."""
    story = sequenced()
    await _apply(store, COMM, story[:-1])
    await _apply(store, OTHER, story[:-1])
    await store.put_outgoing("turn:1", message("m1"))
    await store.end_group(COMM, START)
    await store.end_group(COMM, START + timedelta(hours=1))  # it is known already
    await store.end_group(CommId("nobody-heard-of-it"), START)
    left = set(await store.open_groups()), await store.outgoing(COMM), len(await store.entries(COMM))
    forgotten = [await store.prune(START), await store.prune(START + timedelta(seconds=1))]

    assert (left, forgotten) == (({OTHER}, {}, len(story) - 1), [0, 1])
    assert [len(await store.entries(comm_id)) for comm_id in (COMM, OTHER)] == [0, len(story) - 1]


async def test_a_group_that_was_taken_as_ended_goes_on(store: SqliteStore) -> None:
    """What is applied later opens it again, and its own end is the one that counts."""
    story = sequenced()
    stage = story[-1].entry.state.stage
    assert isinstance(stage, Ended)
    await _apply(store, COMM, story[:2])
    await store.end_group(COMM, START)
    await _apply(store, COMM, story[2:-1])
    is_open = set(await store.open_groups())
    await _apply(store, COMM, story[-1:])
    await store.end_group(COMM, START)
    forgotten = await store.prune(stage.ended_at)

    assert (is_open, forgotten, len(await store.entries(COMM))) == ({COMM}, 0, len(story))


async def test_session_proof_and_epoch_are_kept(store: SqliteStore) -> None:
    """The last session and epoch, and the first proof; `forget_groups` removes none of them."""
    before = await store.last_session(), await store.epoch()
    for number in ("1", "2"):
        await store.note_session(SessionId(f"s-{number}"))
        await store.note_epoch(f"epoch-{number}")
        assert await store.keep_proof(f"proof-{number}") == "proof-1"
    await store.forget_groups()
    assert (before, await store.last_session(), await store.epoch()) == ((None, None), "s-2", "epoch-2")


async def test_a_cancelled_call_leaves_the_memory_usable(store: SqliteStore) -> None:
    """Whenever a call is cancelled, the next one works, and what the cancelled one did is whole or undone."""
    for rounds in range(40):
        writing = asyncio.create_task(store.put_outgoing("turn:1", message(f"m{rounds}")))
        for _ in range(rounds % 5):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    kept = await store.put_outgoing("turn:1", message("last"))
    assert (await store.outgoing(COMM)).get("turn:1") == kept


async def test_forgotten_groups_begin_anew(store: SqliteStore) -> None:
    """Entries, what was to be said and tasks of all groups are gone; who was met stays."""
    story = sequenced()
    for entry in story:
        await store.append(entry)
    await store.put_outgoing("turn:1", message("m-1", comm_id=OTHER))
    await store.begin_task(COMM, T1)
    await store.finish_task(COMM, result("done"))
    await store.meet(COMM, [met(BOB, done=2)])

    await store.forget_groups()

    left = await store.entries(COMM), (await store.outgoing(OTHER)).get("turn:1"), await store.finished_task(COMM, T1)
    assert (left, await store.begin_task(COMM, T1)) == (([], None, None), 1)
    assert [contact.tasks_done for contact in await store.contacts()] == [2]
    assert ([await store.append(entry) for entry in story], await store.meet(COMM, [met(BOB, done=1)])) == (
        [True] * len(story),
        True,
    )


async def test_one_group_can_be_forgotten(store: SqliteStore) -> None:
    """What is known of another group stays."""
    story = sequenced()
    await store.append(story[0])
    await store.put_outgoing("turn:1", message("m-1"))
    await store.put_outgoing("turn:1", message("m-2", comm_id=OTHER))
    await store.finish_task(COMM, result("done"))
    await store.finish_task(OTHER, result("done, too"))

    await store.forget_group(COMM)

    gone = await store.entries(COMM), (await store.outgoing(COMM)).get("turn:1"), await store.finished_task(COMM, T1)
    kept = (await store.outgoing(OTHER)).get("turn:1"), await store.finished_task(OTHER, T1)
    assert (gone, kept) == (([], None, None), (message("m-2", comm_id=OTHER), result("done, too")))


async def test_tasks_survive_a_kill(store: SqliteStore, after_kill: AfterKill) -> None:
    """An attempt is counted before the function runs, and a result is kept before it is sent."""
    await store.append(sequenced()[0])
    await store.begin_task(COMM, T1)
    await store.begin_task(COMM, TaskId("t2"))
    await store.finish_task(COMM, result("done"))

    found = await after_kill()

    assert (await found.finished_task(COMM, T1), await found.begin_task(COMM, TaskId("t2"))) == (result("done"), 2)


async def test_entries_that_a_kill_has_taken_can_be_applied_again(store: SqliteStore, after_kill: AfterKill) -> None:
    """The memory goes on from where it is, whatever of the last entries that is."""
    story = sequenced()
    for entry in story[:-1]:
        await store.append(entry)

    found = await after_kill()
    left = len(await found.entries(COMM))
    applied = [await found.append(entry) for entry in story[left:]]

    assert (set(applied), await found.entries(COMM)) == ({True}, story)


async def _read_all(store: SqliteStore) -> tuple[object, ...]:
    """Whatever can be read of two groups."""
    of_groups = [
        (await store.entries(room), await store.outgoing(room), await store.finished_task(room, T1)) for room in (COMM, OTHER)
    ]
    return of_groups, await store.contacts(), await store.last_session(), await store.epoch()


@pytest.mark.parametrize("seed", range(8))
async def test_a_kill_leaves_what_was_at_some_moment_since_the_last_call_that_lasts(  # noqa: C901 - a case for each call
    store: SqliteStore, after_kill: AfterKill, tmp_path: Path, seed: int
) -> None:
    """Whatever an agent has done, nothing that lasts is lost, and nothing is there without what came before it."""
    chance = random.Random(seed)
    left = {room: _in(room, sequenced()[: chance.randint(2, 5)]) for room in (COMM, OTHER)}
    twin = SqliteStore(tmp_path / "twin.sqlite")
    possible: list[tuple[object, ...]] = [await _read_all(twin)]
    for number in range(chance.randint(1, 25)):
        room, lasts = chance.choice((COMM, OTHER)), False
        match chance.choice(("append", "append", "drop", "put", "begin", "finish", "note")):
            case "append" if left[room]:
                entry = left[room].pop(0)
                for memory in (store, twin):
                    await memory.append(entry)
                lasts = not left[room] and isinstance(entry.entry.state.stage, Ended)
            case "drop":
                dropped = MessageId(f"m{chance.randint(0, number)}")
                for memory in (store, twin):
                    await memory.drop_outgoing(room, dropped)
            case "put":
                for memory in (store, twin):
                    await memory.put_outgoing("turn:1", message(f"m{number}", comm_id=room))
                lasts = True
            case "begin":
                for memory in (store, twin):
                    await memory.begin_task(room, T1)
                lasts = True
            case "finish":
                for memory in (store, twin):
                    await memory.finish_task(room, result(str(number)))
                lasts = True
            case _:
                for memory in (store, twin):
                    await memory.note_session(SessionId(f"s-{number}"))
                lasts = True
        possible = [*([] if lasts else possible), await _read_all(twin)]

    await twin.aclose()
    assert await _read_all(await after_kill()) in possible


async def test_passages_are_found_by_their_words_and_for_their_user_alone(store: SqliteStore) -> None:
    """The best first, what is shown already left out; each is kept once, and forgotten with its group."""
    here, there = CommId("here"), CommId("there")
    told = [("m1", "the old mill burnt down"), ("m2", "a mill, a mill!"), ("m3", "nothing of it")]
    passages = [Passage(here, name, text) for name, text in told]
    for _ in range(2):
        await store.remember("ada", here, passages)
    await store.remember("eve", there, [Passage(there, "m1", "the mill of Eve")])
    words = 'Who burnt the "old" mill? AND NOT (x:'
    assert [one.name for one in await store.recall("ada", words, 5, ())] == ["m1", "m2"]
    assert list(await store.recall("ada", "mill", 1, {(here, "m2")})) == passages[:1]
    assert list(await store.recall("ada", "?!", 5, ())) == []
    await store.keep_only(here, {"m2", "m3"})  # the first was struck
    assert [one.name for one in await store.recall("ada", words, 5, ())] == ["m2"]
    await store.forget_group(here)
    assert list(await store.recall("ada", "mill", 5, ())) == []
    assert [one.text for one in await store.recall("eve", "mill", 5, ())] == ["the mill of Eve"]


async def test_of_one_group_the_newest_passages_are_kept(store: SqliteStore) -> None:
    """Whoever has an agent hear tens of megabytes has it remember the last of them, and of other groups what it did."""
    here, there, large = CommId("here"), CommId("there"), MAX_REMEMBERED_BYTES // 3
    told = [Passage(here, f"m{number}", f"mill {number} ".ljust(large, ".")) for number in range(6)]
    await store.remember("ada", there, [Passage(there, "m0", "mill")])
    kept: list[list[str]] = []
    for upto in (4, 4, 6):
        await store.remember("ada", here, told[:upto])
        kept.append(sorted([one.name for one in await store.recall("ada", "mill", 9, ()) if one.comm_id == here]))
    last = Passage(here, "m6", "mill".ljust(2 * large, "."))
    await store.remember("ada", here, [told[5], last])  # of what is not shown any more nothing fits

    assert kept == [["m1", "m2", "m3"], ["m1", "m2", "m3"], ["m3", "m4", "m5"]]
    assert sorted([one.name for one in await store.recall("ada", "mill", 9, ())]) == ["m0", "m5", "m6"]


async def test_a_summary_replaces_the_one_before(store: SqliteStore) -> None:
    """One for each group, which goes with it, and with what it covers."""
    here = CommId("here")
    for number in ("1", "2"):
        await store.put_summary(here, StoredSummary(frozenset({"m0", f"m{number}"}), f"summary {number}"))
    assert await store.summary(here) == StoredSummary(frozenset({"m0", "m2"}), "summary 2")
    await store.keep_only(here, {"m0", "m2", "m3"})
    assert await store.summary(here) is not None
    await store.keep_only(here, {"m2", "m3"})  # the first was struck
    assert await store.summary(here) is None
    await store.put_summary(here, StoredSummary(frozenset({"m2"}), "summary 3"))
    await store.forget_groups()
    assert await store.summary(here) is None
