"""Listing, showing, watching and cancelling goals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ioa.cli.conversation import task_table
from ioa.cli.failures import ExitCode
from ioa.cli.following import follow_goal, result_document, show_result, write_files
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.cli.transcript import Transcript, task_document
from ioa.group.requests import CancelGroup
from ioa.group.state import GroupState
from ioa.protocol.ids import comm_id_of_goal
from ioa.protocol.usage import MICROS, NOTHING
from ioa.runtime.system import GoalStatus


async def list_goals(url: str | None, last: int, terminal: Terminal) -> None:
    """List the newest goals, oldest first."""
    async with open_reached_system(url) as system:
        found = (await system.goals())[-last:]
    if terminal.as_json:
        terminal.document([goal_document(status) for status in found])
    elif not found:
        terminal.print('No goal yet. Launch one: ioa run "GOAL"')
    else:
        terminal.print(goal_table(found))


async def show_goal(url: str | None, start: str, out: Path | None, terminal: Terminal) -> None:
    """Show one goal and, with `out`, write its files."""
    async with open_reached_system(url) as system:
        status = await system.goal(await system.find_goal(start))
        transcript = Transcript()
        for stored in await system.entries(comm_id_of_goal(status.record.goal.goal_id)):
            transcript.read(stored)
        files = await write_files(system, status.result, out) if out and status.result else []
    if terminal.as_json:
        terminal.document({**goal_document(status), "files": [str(path) for path in files]})
        return
    goal, charter = status.record.goal, status.standing.charter if status.standing else None
    terminal.print(Text(goal.goal, style="bold"), Text())
    rows = {
        "goal": goal.goal_id,
        "group": comm_id_of_goal(goal.goal_id),
        "status": _standing(status),
        "accepted": _local(status.record.accepted_at),
        "inputs": ", ".join(file.name for file in goal.inputs),
        "team": ", ".join(card.agent_id for card in charter.team_members) if charter else "",
        **_usage_rows(status),
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, style="dim"), value)
    terminal.print(table, Text())
    if transcript.tasks():
        terminal.print(task_table(transcript.tasks()))
    if status.result is not None:
        show_result(terminal, status.result, files)


async def watch_goal(url: str | None, start: str, out: Path | None, terminal: Terminal) -> ExitCode:
    """Follow a goal to its end."""
    async with open_reached_system(url) as system:
        goal_id = await system.find_goal(start)
        result = await follow_goal(system, terminal, goal_id)
        files = await write_files(system, result, out) if out else []
        return show_result(terminal, result, files)


async def cancel_goal(url: str | None, start: str, why: str, terminal: Terminal) -> None:
    """Cancel a goal; one that has ended stays as it ended."""
    async with open_reached_system(url) as system:
        goal_id = await system.find_goal(start)
        await system.cancel(CancelGroup(goal_id=goal_id, why=why))
        result = await system.wait_for_result(goal_id)
    if terminal.as_json:
        terminal.document(result_document(result))
    else:
        terminal.print(f"{goal_id} has ended: {result.reason}")


def goal_document(status: GoalStatus) -> Mapping[str, Any]:
    """Describe a goal for programs."""
    state = status.standing.state if status.standing else None
    return {
        **status.record.goal.model_dump(mode="json"),
        "accepted_at": status.record.accepted_at.isoformat(),
        "comm_id": comm_id_of_goal(status.record.goal.goal_id),
        "status": _standing(status),
        "turns_taken": _turns(state) if state else 0,
        "usage": (state.spent if state else NOTHING).model_dump(),
        "members": [member.agent_id for member in state.members] if state else [],
        "tasks": [task_document(task) for task in state.tasks] if state else [],
        "result": result_document(status.result) if status.result else None,
    }


def _turns(state: GroupState) -> int:
    """The turns taken in a group and in the teams nested in it that have ended."""
    return state.turns_taken + state.nested_turns


def _usage_rows(status: GoalStatus) -> Mapping[str, str]:
    """What the goal has used up, and of how much; tokens and cost only where there is something to tell."""
    if status.standing is None:
        return {}
    goal, state = status.record.goal, status.standing.state
    rows = {"turns": f"{_turns(state)} of {goal.max_turns}"}
    if state.spent.tokens or goal.max_tokens is not None:
        bound = "" if goal.max_tokens is None else f" of {goal.max_tokens:,}"
        rows["tokens"] = f"{state.spent.tokens:,}{bound}"
    if state.spent.cost_micros or goal.max_cost_micros is not None:
        bound = "" if goal.max_cost_micros is None else f" of {goal.max_cost_micros / MICROS:g}"
        rows["cost"] = f"{state.spent.cost_micros / MICROS:g}{bound}"
    return rows


def _standing(status: GoalStatus) -> str:
    if status.result is not None:
        return str(status.result.reason)
    return str(status.standing.state.phase) if status.standing else "waiting"


def goal_table(found: list[GoalStatus]) -> Table:
    """Lay out goals, one a row; only what was asked for is cut when the row gets too long."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    for head in ("goal", "accepted", "status", "turns"):
        table.add_column(head, no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True, ratio=1)
    for status in found:
        standing = _standing(status)
        style = "green" if standing == "concluded" else "yellow" if status.result is None else "red"
        turns = str(_turns(status.standing.state)) if status.standing else ""
        goal = status.record.goal
        table.add_row(goal.goal_id, _local(status.record.accepted_at), Text(standing, style=style), turns, Text(goal.goal))
    return table


def _local(at: datetime) -> str:
    here = at.replace(tzinfo=at.tzinfo or UTC).astimezone()
    return here.strftime("%Y-%m-%d %H:%M:%S")
