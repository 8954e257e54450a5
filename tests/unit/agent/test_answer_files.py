"""The files of an answer that names none, whoever states it: rules, a model or an author's function."""

from __future__ import annotations

import pytest

from ioa.agent.groups.answer_files import files_of_answer
from ioa.ports.brain import TaskRecord
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, TaskOutcome, TaskSpec


def _task(name: str, *files: str, uses: str = "", outcome: TaskOutcome = TaskOutcome.DONE) -> TaskRecord:
    spec = TaskSpec(task_id=TaskId(name), assignee=AgentId("a"), task_desc="x", uses=tuple(map(TaskId, uses)))
    made = (Artifact(name=file, object_name=f"{name}/{file}", size_bytes=1, sha256="0" * 64) for file in files)
    return TaskRecord(spec, outcome, "", tuple(made))


@pytest.mark.parametrize(
    ("tasks", "kept"),
    [
        ([_task("a", "x"), _task("b", "x")], ["a/x", "b/x"]),
        ([_task("a", "x", "y"), _task("b", uses="a"), _task("c", "x", uses="b")], ["a/y", "c/x"]),
        ([_task("a", "x"), _task("b", "x", uses="a", outcome=TaskOutcome.REJECTED)], ["a/x"]),
        ([_task(f"t{number}", "x") for number in range(MAX_ARTIFACTS + 1)], [f"t{n}/x" for n in range(1, MAX_ARTIFACTS + 1)]),
    ],
    ids=["strangers", "made anew at second hand", "rejected", "too many"],
)
def test_a_file_gives_way_only_to_one_that_was_made_of_it(tasks: list[TaskRecord], kept: list[str]) -> None:
    """Two files of one name stay where neither was made of the other; of too many, the latest go with the answer."""
    assert [file.object_name for file in files_of_answer(tasks)] == kept
