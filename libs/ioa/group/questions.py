"""Questions of the floor holder and of running tasks. Each is answered once, or by its default.

The discussion waits for the answer to the floor holder, and not for answers to tasks. An answer needs no floor. The first answer
counts; an answer at `until` or later is rejected, before and after the timer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ioa.group import floor, tasks
from ioa.group.events import QuestionAnswered, Said
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, OfTask, OpenTask, Waiting
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AskUser, Decision, Phase, Question, TaskQuestion
from ioa.protocol.policy import Policy

MAX_QUESTIONS = 32
"""Maximum questions per task: they use no turn, and each is an entry of the log."""
MAX_QUESTION_BYTES = 64_000
"""Maximum bytes of the questions of a group's open tasks: each entry contains them."""


def ask(state: GroupState, said: Said, payload: AskUser, _policy: Policy | None) -> GroupState:
    """Let the discussion wait for the answer to the floor holder; this takes a turn."""
    _check(state, payload, said.at, state.limits.deadline)
    question = Question(**_asked(payload))
    stage = Waiting.of_valid(phase=Phase.PAUSED, waiter=said.message.header.sender, until=question.until, question=question)
    return floor.take_turn(state, stage=stage)


def asker_of(state: GroupState, answered: QuestionAnswered) -> AgentId:
    """Return the member that has the floor after an answer.

    Raises:
        IllegalEventError: It is no answer to the present question.
    """
    stage = state.stage
    if not isinstance(stage, Waiting) or stage.question is None or answered.turn != state.turn:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"Nothing that was asked in turn {answered.turn} waits for an answer.")
    _check_answer(stage.question, answered.answer, answered.at)
    return stage.waiter


def ask_of_task(state: GroupState, said: Said, payload: TaskQuestion, _policy: Policy | None) -> GroupState:
    """Note the question of a running task, and renew its lease."""
    task = tasks.reported_task(state, said, payload.task_id)
    if payload.number <= task.asked:
        why = f"Question {payload.number} of task {task.task_id} came after question {task.asked}."
        raise IllegalEventError(RejectionCode.STALE_PROGRESS, why)
    if task.question is not None:
        raise IllegalEventError(RejectionCode.BAD_FORM, f"Task {task.task_id} asks one question at a time, and one waits.")
    if payload.number > MAX_QUESTIONS:
        why = f"Task {task.task_id} asks {MAX_QUESTIONS} questions at most."
        raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)
    _check(state, payload, said.at, task.deadline or state.limits.deadline)
    asked = OfTask(**_asked(payload), number=payload.number, role=payload.role)
    return tasks.replaced(state, tasks.renewed(state, task, said.at).model_copy(update={"asked": asked.number, "question": asked}))


def decide_for_task(state: GroupState, said: Said, payload: Decision, _policy: Policy | None) -> GroupState:
    """Take the answer of the assigner; no task answers itself, and no agent answers for a person."""
    assert payload.task_id is not None, "the machine has looked"
    sender = said.message.header.sender
    task = tasks.open_task(state, payload.task_id, sender)
    if sender != task.assigner or sender == task.assignee:
        who = "the goal's user" if task.assigner == task.assignee else f"{task.assigner}, or the goal's user,"
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"What task {task.task_id} asks {who} answers, and not {sender}.")
    number = payload.number or task.asked
    if task.question is not None and task.question.role is not None:
        why = f"Question {number} of task {task.task_id} is put to a person: no agent answers it."
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, why)
    return answer_task(state, task.task_id, number, payload.choice or payload.content, said.at)


def may_ask(task: OpenTask, agent_id: AgentId) -> bool:
    """Return whether the assignee of a task may ask a question now."""
    return task.assignee == agent_id and task.question is None and task.asked < MAX_QUESTIONS


def waits_for(task: OpenTask, agent_id: AgentId, at: datetime) -> bool:
    """Return whether a task waits for an answer that a member may give now."""
    asked = task.question
    return asked is not None and asked.role is None and at < asked.until and agent_id == task.assigner != task.assignee


def answer_task(state: GroupState, task_id: TaskId, number: int, answer: str, at: datetime) -> GroupState:
    """Take the answer to a question of a task."""
    task = tasks.open_task(state, task_id)
    question = task.question
    if question is None or question.number != number:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"Question {number} of task {task_id} does not wait for an answer.")
    _check_answer(question, answer, at)
    return tasks.replaced(state, task.model_copy(update={"question": None}))


def _check(state: GroupState, question: Question, at: datetime, latest: datetime) -> None:
    if fault := question.fault(at, latest):
        raise IllegalEventError(RejectionCode.BAD_FORM, f"This cannot be asked: {fault}.")
    size = sum([len(encode(one)) for one in (question, *(task.question for task in state.open_tasks if task.question is not None))])
    if size > MAX_QUESTION_BYTES:
        why = f"The questions of this group have {size:,} bytes; {MAX_QUESTION_BYTES:,} are allowed. Wait for answers."
        raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)


def _check_answer(question: Question, answer: str, at: datetime) -> None:
    if at >= question.until:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The time to answer was up at {question.until:%Y-%m-%d %H:%M:%S} UTC.")
    if not answer or not question.takes(answer):
        why = f"{answer!r} is none of the options: {', '.join(question.options)}." if answer else "This answers nothing."
        raise IllegalEventError(RejectionCode.BAD_DECISION, why)


def _asked(question: Question) -> dict[str, Any]:
    return {"text": question.text, "options": question.options, "default": question.default, "until": question.until}
