"""What the model is told of a situation, within a budget of characters.

The goal, the team and the open tasks always stay. What closed tasks came to shares what is left with the transcript, which
loses its oldest middle: how the talk began and what was said last matter most.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.model.budget import Budget
from ioa.agent.model.prompts import Prompts, clipped, defused, fenced
from ioa.ports.brain import GroupView, TaskRecord
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pause,
    SyncTaskAssignment,
)
from ioa.repetition import sketches_of

_REPEATED_WITHIN = 10


def goal(text: str, budget: Budget) -> str:
    """Quote the goal."""
    return fenced("goal", defused(clipped(text, budget.prompt_chars // 4)))


def inputs(artifacts: Sequence[Artifact]) -> str:
    """Name the files that came with the goal."""
    return fenced(
        "inputs", defused("\n".join(f"{file.name} ({file.media_type}, {file.size_bytes} bytes)" for file in artifacts[:20]))
    )


def agent_line(card: AgentCard, most: int) -> str:
    """Describe an agent in one line, its id first."""
    skills = ", ".join(skill.name for skill in card.skills[:8])
    about = " ".join(f"{card.description}{f' Skills: {skills}.' if skills else ''}".split())
    return f"{card.agent_id}: {defused(clipped(about, most))}"


def team(view: GroupView, budget: Budget) -> str:
    """List the members with what they can do, and who is out of reach."""
    cards = view.charter.team_members
    share = max(40, budget.prompt_chars // 4 // len(cards))
    lines = [agent_line(card, share) + _presence(card.agent_id, view) for card in cards]
    return fenced("team", "\n".join(lines))


def _presence(agent_id: AgentId, view: GroupView) -> str:
    if agent_id in view.state.living():
        return ""
    return " [away for a moment, may be given tasks]" if agent_id in view.reachable else " [out of reach]"


def tasks(view: GroupView, budget: Budget) -> str:
    """List the open tasks, and as many of the latest closed ones with what they came to as there is room for."""
    room = budget.prompt_chars // 3
    share = max(60, room // max(1, min(8, len(view.tasks))))
    shown: list[str] = []
    for task in reversed(view.tasks):
        lines = _task_lines(task, share)
        if task.outcome is None or len(lines) <= room:
            shown.insert(0, lines)
            room -= len(lines)
    left_out = len(view.tasks) - len(shown)
    return fenced("tasks", "\n".join([*([f"[… {left_out} closed tasks left out …]"] if left_out else []), *shown]))


def results(used: Sequence[TaskRecord], budget: Budget) -> str:
    """Show what earlier tasks came to."""
    share = budget.prompt_chars // 4 // max(1, len(used))
    return fenced("results", "\n".join(_task_lines(task, share) for task in used))


def transcript(messages: Sequence[Message], most: int) -> str:
    """Quote the conversation in at most about `most` characters: its first message and as many of the last as fit."""
    told = [line for message in messages if (line := _said(message, max(80, most // 4)))]
    if sum(map(len, told)) <= most or len(told) < 2:
        return fenced("messages", "\n".join(told))
    room = most - len(told[0])
    kept: list[str] = []
    for line in reversed(told[1:]):
        if kept and len(line) > room:
            break
        kept.insert(0, line)
        room -= len(line)
    left_out = len(told) - 1 - len(kept)
    mark = [f"[… {left_out} messages left out …]"] if left_out else []
    return fenced("messages", "\n".join([told[0], *mark, *kept]))


def acts(prompts: Prompts, kinds: Sequence[str]) -> str:
    """Describe the kinds of message that are open to the speaker."""
    return "\n".join(prompts.act(kind) for kind in kinds)


def refusals(view: GroupView) -> str:
    """Repeat what the router said of this turn's earlier attempts."""
    return fenced("refusals", "\n".join(defused(clipped(refusal, 300)) for refusal in view.refusals[-3:]))


def repeated(view: GroupView) -> str:
    """Name who said word for word what the speaker said last, among the messages just before it; empty if nobody did."""
    own = next((at for at in reversed(range(len(view.messages))) if view.messages[at].header.sender == view.me), None)
    if own is None:
        return ""
    said = sketches_of(view.messages[own].payload)
    before = view.messages[max(0, own - _REPEATED_WITHIN) : own]
    return next((message.header.sender for message in reversed(before) if said and sketches_of(message.payload) == said), "")


def _task_lines(task: TaskRecord, share: int) -> str:
    spec = task.spec
    state = str(task.outcome) if task.outcome else "open"
    head = f"{spec.task_id} [{state}] {spec.assignee}: {defused(clipped(spec.task_desc, max(40, share // 3)))}"
    if not task.outcome:
        return head
    files = f" (files: {', '.join(defused(file.name) for file in task.artifacts[:10])})" if task.artifacts else ""
    return f"{head}\n  result: {defused(clipped(task.conclusion, max(60, share)))}{files}"


def _said(message: Message, most: int) -> str:
    """Quote one message; what a task came to stands with the task and is only named here."""
    payload, sender = message.payload, message.header.sender
    match payload:
        case InformTaskProgress():
            return ""
        case InformTaskResult():
            text = f"task {payload.task_id} is {payload.outcome}"
        case SyncTaskAssignment() | AsyncTaskAssignment():
            given = ", ".join(f"{task.task_id} to {task.assignee}" for task in payload.tasks)
            text = f"{payload.content} [gives out {given}]".strip()
        case Pause():
            text = f"{payload.content} [waits for {', '.join(payload.triggers)}]".strip()
        case _:
            text = payload.content
    if not text:
        return ""
    return fenced("message", defused(clipped(text, most)), **{"from": sender, "type": payload.type})
