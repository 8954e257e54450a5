"""The engineer: it writes, tests and hands over within its folder, and does nothing that its guards refuse."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

from engineer import agent, bash
from ioa.react import Observation
from ioa.testing import RecordingContext, ScriptedModel, wants
from ioa.testing.scripted_model import Line

SUMS = "def add(a: int, b: int) -> int:\n    return a + b\n"
TEST = "import unittest, sums\nclass Adds(unittest.TestCase):\n    def test(self): self.assertEqual(sums.add(2, 3), 5)\n"


async def test_engineer_tests_its_file_inside_its_folder(tmp_path: Path) -> None:
    """What leads out of the folder is refused before anything runs, and the model reads why; what passed its test is the result."""
    (tmp_path / "work").mkdir()
    script: list[Line] = [
        wants("write_file", path="../evil.py", text="print(1)"),
        wants("bash", command="cat ../../secret"),
        wants("write_file", path="sums.py", text=SUMS),
        wants("write_file", path="test_sums.py", text=TEST),
        wants("bash", command="rm  -RF ."),
        wants("bash", command="python -m unittest", keep=["sums.py"]),
        "sums.py adds up, and its test passes.",
    ]
    ctx = RecordingContext(tmp_path / "work", model=(model := ScriptedModel(script)))
    answer = agent.function("write add with a test", ctx)
    assert inspect.isawaitable(answer)
    said, told = await answer, [one.content for one in model.asked[-1].messages if one.role == "tool"]
    assert [one.startswith("Refused: Only what is in the project's folder") for one in told] == [True, True] + [False] * 4
    assert told[4] == "Refused: 'rm -rf' is not allowed here." and "OK" in told[5]
    assert (said, {file.name: file.path.read_text() for file in ctx.artifacts}) == (script[-1], {"sums.py": SUMS})
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name == "evil.py"]


def test_the_sandbox_holds_where_a_guard_is_evaded(tmp_path: Path) -> None:
    """A path that is put together in the shell reads nothing outside, and a link is no file of the project."""
    (tmp_path / "secret").write_text("swordfish")
    (tmp_path / "work").mkdir(mode=0o755)
    ctx = RecordingContext(tmp_path / "work")
    command = f"d=.; cat $d./$d./secret {tmp_path}/secret; ln -s {tmp_path}/secret link"
    brought = bash.call({"command": command, "keep": ["link", "../output.txt"]}, ctx)
    assert isinstance(brought, Observation) and "swordfish" not in brought.text and not brought.files
