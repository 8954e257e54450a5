"""`ioa goals`, `ioa goal` and `ioa rerun`: lists, shows, follows, repeats and cancels goals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ioa.adapters.nats.stores.goal_records import drop_orders
from ioa.cli.command import Limit, TextCommand, command
from ioa.cli.output.console import create_fields, create_table, list_rows, local_time
from ioa.cli.output.conversation_output import in_one_row, read_transcript, task_table
from ioa.cli.output.results import (
    announce,
    create_folder,
    fetch_files,
    follow_goal,
    show_answer,
    show_files,
    show_result,
)
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.client.costs import DecisionCall, costs_by_purpose, decision_calls
from ioa.client.documents import (
    GoalDocument,
    GoalRow,
    ResultDocument,
    goal_status,
    told,
    turns_of,
    usage_of,
)
from ioa.client.history import conversation
from ioa.client.transcript import Transcript
from ioa.errors import ForbiddenError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Event, Said
from ioa.group.requests import GoalStatus
from ioa.protocol.goals import Artifact, read_labels
from ioa.protocol.ids import ADMIN, LOCAL, GoalName, UserId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.usage import MICROS, Usage
from ioa.runtime.exit_code import ExitCode

goals = typer.Typer()
goal = typer.Typer(no_args_is_help=True, help="Look at one goal.")
rerun = typer.Typer()

_MIN_TABLE_WIDTH = 100
"""Columns below which each goal is shown in two lines."""
_PAGE = 200
"""Goals read per request when all goals of a user are cancelled."""


@command(goals)
async def list_goals(
    system: Client,
    terminal: Terminal,
    *,
    limit: Limit = 50,
    open_only: bool = False,
    label: Sequence[str] = (),
) -> None:
    """List the goals and their states, newest first."""
    read = partial(system.goals, open_only=open_only, labels=read_labels(label))

    def render(found: Sequence[GoalStatus]) -> Sequence[RenderableType]:
        return [goal_table(found, terminal.result.console.width)]

    nothing = "No such goal." if open_only or label else 'No goal yet. Launch one: ioa run "GOAL"'
    await list_rows(terminal, read, lambda page: page.goals, GoalRow.of, render, limit=limit, nothing=nothing)


@command(goal, "show")
async def show_goal(system: Client, terminal: Terminal, goal_id: str, *, out: Path | None = None, costs: bool = False) -> None:
    """Show a goal, its team, its tasks and its result; with --out, write its files and the steps that tasks recorded.

    Args:
        costs: Also show the usage by purpose, and each call of a model, with nested teams.
    """
    name = await system.find_goal(goal_id)
    create_folder(out)
    status = await system.goal(name)
    comm_id, result = status.record.goal.comm_id, status.result
    entries = await system.group_entries(comm_id)
    transcript = read_transcript(entries)
    files = [(one.name, one) for one in result.artifacts] if result else []
    paths = await fetch_files(system, name.goal_id, out, [*files, *_traces(stored.entry.event for stored in entries)])
    calls = [*decision_calls(stored.entry for stored in await conversation(system, comm_id))] if costs else []
    spent = costs_by_purpose(calls, usage_of(status)) if costs else {}
    if terminal.as_json:
        document = told(GoalDocument.of(status, transcript.known_tasks(comm_id))) | {"files": [*map(str, paths)]}
        if costs:
            document |= {"costs": {purpose: told(usage) for purpose, usage in spent.items()}, "calls": [*map(told, calls)]}
        terminal.document(document)
        return
    _show_goal(terminal, status, transcript, paths)
    if costs:
        tables = [cost_table(spent), Text(), call_table(calls)] if spent else ["No tokens and no money were spent."]
        terminal.print(Text(), *tables)


def _traces(events: Iterable[Event]) -> Iterator[tuple[str, Artifact]]:
    """Yield the recorded steps of tasks, each with a file name."""
    for event in events:
        if isinstance(event, Said) and isinstance(result := event.message.payload, InformTaskResult) and result.traces:
            yield f"{result.task_id}.jsonl", result.traces[0]


def _show_goal(terminal: Terminal, status: GoalStatus, transcript: Transcript, files: Sequence[Path]) -> None:
    goal, charter = status.record.goal, status.standing.charter if status.standing else None
    terminal.print(Text(continued(goal.goal), style="bold"))
    fields = {
        "goal": goal.goal_id,
        "user": goal.user,
        "group": goal.comm_id,
        "status": goal_status(status),
        "accepted": local_time(status.record.accepted_at),
        "labels": ", ".join(shown_in_line(f"{name}={value}") for name, value in goal.labels.items()),
        "inputs": ", ".join(shown_in_line(file.name) for file in goal.inputs),
        "team": ", ".join(card.agent_id for card in charter.team_members) if charter else "",
        **_usage_fields(status),
    }
    terminal.print(Text(), create_fields(fields), Text())
    if tasks := transcript.tasks():
        terminal.print(task_table(tasks))
    if status.result is not None:
        terminal.print(Text())
        show_answer(terminal, status.result)
        show_files(terminal, status.result, files)


def _usage_fields(status: GoalStatus) -> Mapping[str, str]:
    """Return what the goal has used, and its limits; tokens and cost only if there are any."""
    turns, spent, goal = turns_of(status), usage_of(status), status.record.goal
    if turns is None:
        return {}
    fields = {"turns": f"{turns} of {goal.max_turns}"}
    if spent.tokens or goal.max_tokens is not None:
        fields["tokens"] = f"{spent.tokens:,}" + ("" if goal.max_tokens is None else f" of {goal.max_tokens:,}")
    if spent.cost_micros or goal.max_cost_micros is not None:
        limit = "" if goal.max_cost_micros is None else f" of {goal.max_cost_micros / MICROS:g}"
        fields["cost"] = f"{spent.cost_micros / MICROS:g}{limit}"
    return fields


@command(goal, "watch", has_quiet=True)
async def watch_goal(system: Client, terminal: Terminal, goal_id: str, *, out: Path | None = None) -> ExitCode:
    """Follow a goal from its first message to its end; exits 1 if it fails."""
    create_folder(out)
    return await show_result(system, terminal, await follow_goal(system, terminal, await system.find_goal(goal_id)), out)


@command(rerun, cls=TextCommand, has_quiet=True)
async def rerun_goal(
    system: Client, terminal: Terminal, goal_id: str, message: str, *, at: int, out: Path | None = None
) -> ExitCode:
    """Launch a new goal that continues a goal's conversation up to one message, with this message replaced, and follow it.

    The new goal has the files, team and limits of the earlier goal, which is not changed. Exit codes: as of `ioa run`.

    Args:
        message (MESSAGE): The new text of the message.
        at (SEQ): The entry of the message, by its `seq` in `ioa groups ID --json`.
    """
    create_folder(out)
    launched = await system.rerun(await system.find_goal(goal_id), at=at, message=message)
    record = launched.record or (await system.goal(launched.name)).record
    announce(terminal, launched.name, record.goal.goal)
    return await show_result(system, terminal, await follow_goal(system, terminal, launched.name), out)


@command(goal, "cancel")
async def cancel(system: Client, terminal: Terminal, goal_id: str | None = None, *, user: str | None = None, why: str = "") -> None:
    """Cancel a goal and every team that works for it, or all goals of a user, including goals that have not begun.

    Args:
        goal_id (ID): The goal's id or its unique beginning.
        user (NAME): As an admin: all goals of this user.
        why: The reason that goes on record.
    """
    if bool(user) is bool(goal_id):
        raise typer.BadParameter("Give either the ID of a goal or --user.")
    if user:
        await cancel_user_goals(system, UserId(user), why, terminal)
        return
    goal = await system.find_goal(str(goal_id))
    await system.cancel(goal, why)
    result = await system.wait_for_result(goal)
    terminal.show(told(ResultDocument.of(result)), f"{goal.goal_id} has ended: {result.reason}")


async def cancel_user_goals(system: Client, user: UserId, why: str, terminal: Terminal) -> None:
    """Remove a user's goals that have not begun, and cancel the open ones, until there are none.

    Raises:
        ForbiddenError: The caller is no admin.
        UnavailableError: The system does not answer.
    """
    cancelled: list[GoalName] = []
    if (me := await system.user()) not in (ADMIN, LOCAL):
        raise ForbiddenError(f"This credential is {me}'s.", hint="An admin cancels the goals of others.")
    while True:  # a goal that was being accepted when the waiting ones were removed is open at the next turn
        await drop_orders(system.connection, user)
        new = [name async for name in _open_goals(system) if name.user == user and name not in cancelled]
        if not new:
            break
        for name in new:
            await system.cancel(name, why)
        cancelled += new
    terminal.show(
        {"cancelled": [*map(str, cancelled)]},
        f"{len(cancelled)} open goals of {user} are cancelled; goals that had not begun are removed",
    )


async def _open_goals(system: Client) -> AsyncIterator[GoalName]:
    before, is_last = None, False
    while not is_last:
        page = await system.goals(limit=_PAGE, before=before, open_only=True)
        for one in page.goals:
            yield one.record.goal.name
        before, is_last = page.before, page.before is None


def cost_table(spent: Mapping[str, Usage]) -> RenderableType:
    """Return a table of a goal's usage by purpose."""
    rows = [
        (purpose, f"{one.tokens_in:,}", f"{one.tokens_cached:,}", f"{one.tokens_out:,}", f"{one.cost_micros / MICROS:g}")
        for purpose, one in spent.items()
    ]
    numbers = ("tokens in", "cached", "tokens out", "cost")
    return create_table(("spent for", *numbers), rows, numbers=numbers)


def call_table(calls: Sequence[DecisionCall]) -> RenderableType:
    """Return a table of model calls, in the order of the decisions."""
    rows = [
        (
            call.comm_id,
            str(call.turn or ""),
            call.agent_id,
            *map(shown_in_line, (call.decided, call.purpose, " ".join(filter(None, (call.came_to, call.about))))),
            f"{call.milliseconds / 1_000:.1f}",
            f"{call.usage.tokens_in:,}",
            f"{call.usage.tokens_out:,}",
        )
        for call in calls
    ]
    heads = ("group", "turn", "agent", "decided", "asked to", "came to", "s", "tokens in", "out")
    return create_table(heads, rows, numbers=heads[-3:])


def goal_table(found: Sequence[GoalStatus], width: int) -> RenderableType:
    """Return a table of goals for a terminal of `width` columns; a narrow one has two lines per goal. Only goal texts are cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    for head in ("goal", "accepted", "status", "turns"):
        table.add_column(head, no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True, ratio=1)
    lines: list[Text] = []
    for status in found:
        goal, standing, turns = status.record.goal, goal_status(status), turns_of(status)
        state = Text(standing, style="green" if standing == "concluded" else "yellow" if status.result is None else "red")
        at, what = local_time(status.record.accepted_at), in_one_row(goal.goal)
        table.add_row(goal.goal_id, at, state, "" if turns is None else str(turns), what)
        lines.append(Text.assemble(goal.goal_id, "  ", state))
        lines.append(Text.assemble("  ", (at, "dim"), "  ", what, no_wrap=True, overflow="ellipsis"))
    return table if width >= _MIN_TABLE_WIDTH else Group(*lines)
