"""READ: exact ranges of shortened texts and files, without a turn."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ioa.agent.model import ModelBrain, reading
from ioa.agent.model.metered_calls import Budget, estimate_tokens
from ioa.agent.model.reading import MAX_READS
from ioa.protocol.goals import Artifact
from ioa.protocol.messages import ConcludeGroupDiscussion
from ioa.testing.scripted_model import ScriptedModel
from tests.rig.memory_files import MemoryFiles
from tests.unit.agent.model.golden_prompts import give, group, report
from tests.unit.agent.model.machine_group import Group
from tests.unit.agent.model.situations import ANN, BOB, decision

CONCLUDE = decision(type="CONCLUDE", goal_reached=True, content="Done.")
LONG = "".join(f"row {number:06d}\n" for number in range(5_000))


async def with_files(**files: tuple[str, bytes]) -> tuple[Group, dict[str, Artifact]]:
    """A group in which bob has made files, each with its kind and bytes."""
    team, store = group(), MemoryFiles()
    made = {name: await store.put(f"c1/t1-x/{name}", name.replace("_", "."), data, kind) for name, (kind, data) in files.items()}
    team.files = store
    give(team, BOB, "t1-x", "make files")
    report(team, "t1-x", LONG, *made.values())
    return team, made


async def told(team: Group, *reads: Mapping[str, object]) -> list[str]:
    """Return the answer to each READ."""
    model = ScriptedModel([*(decision(type="READ", **read) for read in reads), CONCLUDE])
    before = team.state
    await ModelBrain(model).speak(team.view(ANN))
    assert team.state is before
    return [message.content for message in model.asked[-1].messages[len(model.asked[0].messages) + 1 :: 2]]


async def test_read_returns_the_text_from_the_requested_character() -> None:
    """At most 20,000 characters; the answer contains the position."""
    team, _ = await with_files()
    some, rest, message, goal = await told(
        team, {"what": "t1-x", "start": 11}, {"what": "t1-x", "start": 100}, {"what": "m2"}, {"what": "goal"}
    )
    assert "<read>\nt1-x from 11 to 20011 of 55000 characters (34,989 more: READ t1-x from 20011):\nrow 000001\n" in some
    assert (LONG[100:20_100] in rest, LONG[100:20_101] in rest, "from 100 to 20100" in rest) == (True, False, True)
    assert (LONG[:20_000] in message, team.charter.goal in goal) == (True, True)


async def test_a_decision_reads_so_much_and_no_more() -> None:
    """After eight reads the model is requested to decide."""
    team, _ = await with_files()
    model = ScriptedModel([decision(type="READ", what="t1-x", start=0)] * (MAX_READS + 1) + [CONCLUDE])
    brain = ModelBrain(model)
    await brain.speak(team.view(ANN))
    assert (len(model.asked), "used up" in model.asked[-1].messages[-1].content) == (10, True)


async def test_reads_are_a_part_of_the_prompt() -> None:
    """The prompt stays within its limit; a mark contains the next command."""
    team, _ = await with_files()
    model = ScriptedModel([decision(type="READ", what="t1-x", start=at) for at in (0, 9_000, 18_000)] + [CONCLUDE])
    await ModelBrain(model, budget=Budget(max_prompt=9_000)).speak(team.view(ANN))
    assert all(sum(estimate_tokens(one.content) for one in asked.messages) <= 9_000 for asked in model.asked)
    first = model.asked[1].messages[-1].content
    shown = int(first.partition("from 0 to ")[2].partition(" ")[0])
    assert f" of 55000 characters ({55_000 - shown:,} more: READ t1-x from {shown}):\n" in first


async def test_reads_files_by_their_kind() -> None:
    """Text and HTML as they are, anything else by name and size; the goal's files too, unless they are gone."""
    page = b"<html><head><style>p{}</style></head><p>One <b>two</b></p><script>x</script><td>3</td></html>"
    kinds = {"a_csv": ("text/csv; charset=utf-8", b"x,y\n1,2"), "b_html": ("text/html", page), "c_png": ("image/png", b"\x89PNG")}
    team, made = await with_files(**kinds)
    team.change_charter(inputs=(made["a_csv"], *team.charter.inputs))
    names = ("t1-x/a.csv", "t1-x/b.html", "input/a.csv", "`t1-x/c.png`", "input/sales.csv")
    csv, html, given, image, gone = await told(team, *({"what": name} for name in names))
    assert ("x,y\n1,2" in csv, "<p>One <b>two</b></p>" in html, "x,y\n1,2" in given) == (True, True, True)
    assert image == "<read>\n`c.png` (image/png, 4 bytes) cannot be read: it is no text in UTF-8.\n</read>"
    assert "`sales.csv` (text/csv, 18,204 bytes" in gone and "cannot be read now" in gone


@pytest.mark.parametrize("what", ["t9-x", "m99", "t1-x/../a", "input/none.csv", ""])
async def test_read_of_an_unknown_name_lists_the_names(what: str) -> None:
    """An unknown id costs a read and no repair."""
    team, _ = await with_files(a_csv=("text/csv", b"1"))
    [said] = await told(team, {"what": what})
    there = "There are goal, the messages m1 to m2, t1-x, t1-x/a.csv, input/sales.csv."
    assert said == f"<read>\nThere is nothing called `{what}` to read. {there}\n</read>"


async def test_result_that_exceeds_a_message_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer made of it is whole too; a file that is too large is not read, and the result is the text of its message."""
    whole = "figures " * 40_000
    team, store = group(), MemoryFiles()
    team.files = store
    for task_id in ("t1-x", "t2-y"):
        give(team, BOB, task_id, "count")
        file = await store.put(f"c1/{task_id}/{task_id}.txt", f"{task_id}.txt", whole.encode(), "text/plain")
        report(team, task_id, f"in short {task_id}", file)
    [said] = await told(team, {"what": "t1-x", "start": 300_000})
    assert whole[300_000:320_000] in said
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 400_000)
    parts = [{"result": "t1-x"}, {"result": "t2-y"}]
    model = ScriptedModel([decision(type="CONCLUDE", goal_reached=True, content="All:", answer_from=parts)])
    announced = await ModelBrain(model).speak(team.view(ANN))
    assert isinstance(announced, ConcludeGroupDiscussion) and announced.conclusion is not None
    assert announced.conclusion.content == f"All:\n\n## count\n\n{whole}\n\n## count\n\nin short t2-y"
