"""Listing, showing, watching and cancelling goals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ioa.adapters.nats.delivery.goal_orders import drop_orders
from ioa.adapters.nats.system_client import NatsSystemClient, open_system
from ioa.adapters.nats.wire.connection import open_connection
from ioa.cli.command import TextCommand, command
from ioa.cli.conversation import in_one_row, task_table
from ioa.cli.files import Produced, check_writable, write_files
from ioa.cli.following import fetch_files, follow_goal, show_answer, show_files, tell_result
from ioa.cli.groups import show_states
from ioa.cli.options import AsJson, Costs, Everything, GoalIdArgument, Labels, Limit, Listing, OpenOnly, Out, Quiet, Traces, Url
from ioa.cli.paging import ListView, list_pages
from ioa.cli.reach import open_reached_system, reach
from ioa.cli.terminal import Terminal
from ioa.client.calls import DecisionCall, calls_of
from ioa.client.client import Client
from ioa.client.costs import COMMUNICATION, Purpose, costs_of
from ioa.client.documents import (
    GoalDocument,
    GoalRow,
    ResultDocument,
    SpendingDocument,
    standing_of,
    told,
    turns_of,
    usage_of,
)
from ioa.client.history import conversation
from ioa.client.transcript import Transcript, what_rules_decided
from ioa.errors import ForbiddenError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Event, Said
from ioa.group.goal_lists import GoalFilter, GoalStatus
from ioa.group.requests import CancelGroup
from ioa.hosting.place import PATIENCE
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import ADMIN, LOCAL, GoalId, GoalName, TaskId, UserId
from ioa.protocol.labels import read_labels
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.model_calls import TAKEN
from ioa.protocol.usage import MICROS, NOTHING, Usage
from ioa.runtime.exit_code import ExitCode

goals = typer.Typer()
goal = typer.Typer(no_args_is_help=True, help="Look at one goal.")
rerun = typer.Typer()

_LEAST_ROW_WIDTH = 100
"""In less, a row with all of a goal's figures leaves no room for what was asked for."""


@command(goals)
async def list_goals(
    limit: Limit = 50,
    everything: Everything = False,
    open_only: OpenOnly = False,
    label: Labels = [],  # noqa: B006
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the goals and their states, newest first."""
    asked = Listing(limit, everything, open_only, read_labels(label))
    terminal = Terminal(as_json=as_json)

    def show(goals: Sequence[GoalStatus], is_first: bool) -> None:
        if goals:
            terminal.print(goal_table(goals, terminal.result.console.width, heads=is_first))

    if asked.labels:
        nothing = "No goal bears these labels."
    else:
        nothing = "No goal is open." if asked.open_only else 'No goal yet. Launch one: ioa run "GOAL"'
    more = "There are more: --limit N lists more of them, --all lists all."
    view = ListView("goal", GoalRow.of, show, nothing, more)
    async with open_reached_system(url) as system:

        async def read(before: int | None) -> tuple[Sequence[GoalStatus], int | None]:
            page = await system.goals(limit=asked.page, before=before, only=GoalFilter(asked.open_only, asked.labels))
            return page.goals, page.before

        await list_pages(read, view, asked, terminal)


@command(goal, "show")
async def show_goal(
    goal_id: GoalIdArgument,
    out: Out = None,
    traces: Traces = None,
    costs: Costs = False,
    at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="Show only the states of its groups after this entry.", show_default=False)
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show a goal, its team, its tasks and its result; with --out, write its files, with --traces the steps that tasks recorded."""
    terminal = Terminal(as_json=as_json)
    if at is not None:
        await show_states(url, goal_id, at, terminal)
        return
    for folder in filter(None, (out, traces)):
        check_writable(folder)
    async with open_reached_system(url) as system:
        status = await system.goal(await system.find_goal(goal_id))
        transcript, noted = Transcript(), dict[TaskId, Artifact]()
        comm_id = status.record.goal.comm_id
        entries = await system.entries(comm_id)
        for stored in entries:
            transcript.read(stored)
            noted |= _noted(stored.entry.event)
        asked = [*calls_of(stored.entry for stored in await conversation(system, comm_id))] if costs else []
        fetched = await fetch_files(system, status.result, out)
        written = await _fetch_traces(system, status.record.goal.goal_id, noted, traces)
    spent = costs_of(stored.entry for stored in entries) if costs else None
    if terminal.as_json:
        document = told(GoalDocument.of(status, transcript.known_tasks(comm_id)))
        document["files"] = [str(path) for path in fetched.paths]
        more = {"traces": noted_steps} if (noted_steps := _told(noted, written)) else {}
        spending = {} if spent is None else told(SpendingDocument.of(spent, asked))
        terminal.document({**document, **more, **spending})
    else:
        _show(terminal, status, transcript, fetched.paths)
        if noted:
            where = ", ".join(map(str, written)) or "--traces DIR writes them"
            terminal.print(Text(f"\n{', '.join(noted)} noted their steps: {where}", style="dim"))
        if spent is not None:
            terminal.print(Text(), cost_table(spent))
        if asked:
            terminal.print(Text(), call_table(asked))
    fetched.check()


def _noted(event: Event) -> dict[TaskId, Artifact]:
    """Return the trace that a result brings, by its task."""
    if not isinstance(event, Said) or not isinstance(event.message.payload, InformTaskResult):
        return {}
    result = event.message.payload
    return {result.task_id: result.traces[0]} if result.traces else {}


def _told(noted: Mapping[TaskId, Artifact], written: Sequence[Path]) -> list[dict[str, object]]:
    paths: Sequence[Path | None] = written or [None] * len(noted)
    return [{"task_id": task_id, "path": path and str(path)} for task_id, path in zip(noted, paths, strict=True)]


async def _fetch_traces(
    system: NatsSystemClient, goal_id: GoalId, noted: Mapping[TaskId, Artifact], out: Path | None
) -> list[Path]:
    """Write each trace under the name of its task into the new folder `<out>/<goal_id>`, which is not made for none."""
    if out is None or not noted:
        return []
    files = [Produced(f"{task_id}.jsonl", await system.fetch(trace)) for task_id, trace in noted.items()]
    return await asyncio.to_thread(write_files, out, goal_id, files)


def _show(terminal: Terminal, status: GoalStatus, transcript: Transcript, files: list[Path]) -> None:
    goal, charter = status.record.goal, status.standing.charter if status.standing else None
    terminal.tell(Text(continued(goal.goal), style="bold"))
    terminal.print(Text())
    rows = {
        "goal": goal.goal_id,
        "user": goal.user,
        "group": goal.comm_id,
        "status": standing_of(status),
        "accepted": local_time(status.record.accepted_at),
        "labels": ", ".join(shown_in_line(f"{name}={value}") for name, value in goal.labels.items()),
        "inputs": ", ".join(shown_in_line(file.name) for file in goal.inputs),
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
        terminal.print(Text())
        show_answer(terminal, status.result)
        show_files(terminal, status.result, files)


@command(goal, "watch")
async def watch_goal(
    goal_id: GoalIdArgument, out: Out = None, url: Url = None, quiet: Quiet = False, as_json: AsJson = False
) -> ExitCode:
    """Follow a goal from its first message to its end; exits 1 if it fails."""
    terminal = Terminal(as_json=as_json, quiet=quiet)
    if out is not None:
        check_writable(out)
    async with open_reached_system(url) as system:
        result = await follow_goal(system, terminal, await system.find_goal(goal_id))
        terminal.progress.print(Text())
        return await tell_result(system, terminal, result, out)


@command(rerun, cls=TextCommand)
async def rerun_goal(
    goal_id: GoalIdArgument,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The new text of the message.", show_default=False)],
    at: Annotated[
        int,
        typer.Option(metavar="SEQ", help="The entry of the message, by its `seq` in `ioa groups ID --json`.", show_default=False),
    ],
    out: Out = None,
    url: Url = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Launch a new goal that continues a goal's conversation up to one message, with this message replaced, and follow it.

    The new goal has the files, team and limits of the earlier goal, which is not changed. Exit codes: as of `ioa run`.
    """
    terminal = Terminal(as_json=as_json, quiet=quiet)
    if out is not None:
        check_writable(out)
    async with open_reached_system(url) as system:
        launched = await Client(system).rerun(await system.find_goal(goal_id), at=at, message=message)
        if terminal.as_json and not terminal.quiet:
            record = launched.record or (await system.goal(launched.name)).record
            terminal.line("goal", goal_id=launched.goal_id, comm_id=launched.comm_id, goal=record.goal.goal)
        terminal.progress.print(Text.assemble(("goal  ", "dim"), (launched.goal_id, "bold")), Text())
        result = await follow_goal(system, terminal, launched.name)
        terminal.progress.print(Text())
        return await tell_result(system, terminal, result, out)


async def cancel_goal(url: str | None, start: str, why: str, terminal: Terminal) -> None:
    """Cancel a goal; one that has ended stays as it ended."""
    async with open_reached_system(url) as system:
        goal = await system.find_goal(start)
        await system.cancel(CancelGroup(goal_id=goal.goal_id, why=why), goal.owner)
        result = await system.wait_for_result(goal)
    if terminal.as_json:
        terminal.document(told(ResultDocument.of(result)))
    else:
        terminal.print(f"{goal.goal_id} has ended: {result.reason}")


_PAGE = 200
"""Goals read per request when all goals of a user are cancelled."""


async def cancel_user_goals(url: str | None, user: UserId, why: str, terminal: Terminal) -> None:
    """Remove a user's goals that have not begun, and cancel the open ones, until there are none.

    Raises:
        ForbiddenError: The caller is no admin.
        UnavailableError: The system does not answer.
    """
    settings, _ = await reach(url)
    cancelled: list[GoalName] = []
    async with open_connection(settings, patience=PATIENCE) as client, open_system(settings, patience=PATIENCE) as system:
        if (me := await system.user()) not in (ADMIN, LOCAL):
            raise ForbiddenError(f"This credential is {me}'s.", hint="An admin cancels the goals of others.")
        found = True
        while found:  # a goal that was being accepted when the waiting ones were removed is open at the next turn
            await drop_orders(client.jetstream(), user)
            found = await _cancel_open(system, user, why, cancelled)
    if terminal.as_json:
        terminal.document({"cancelled": [str(one) for one in cancelled]})
    else:
        terminal.print(f"{len(cancelled)} open goals of {user} are cancelled; goals that had not begun are removed")


async def _cancel_open(system: NatsSystemClient, user: UserId, why: str, cancelled: list[GoalName]) -> bool:
    """Cancel the open goals of a user that are not in `cancelled` yet; return whether there were any."""
    before, known = None, len(cancelled)
    while True:
        page = await system.goals(limit=_PAGE, before=before, only=GoalFilter(open_only=True))
        for name in (one.record.goal.name for one in page.goals):
            if name.owner == user and name not in cancelled:
                await system.cancel(CancelGroup(goal_id=name.goal_id, why=why), user)
                cancelled.append(name)
        before = page.before
        if before is None:
            return len(cancelled) > known


def _usage_rows(status: GoalStatus) -> Mapping[str, str]:
    """Return what the goal has used up, and of how much; tokens and cost only where there is something to tell."""
    turns, spent, goal = turns_of(status), usage_of(status), status.record.goal
    if turns is None:
        return {}
    rows = {"turns": f"{turns} of {goal.max_turns}"}
    if spent.tokens or goal.max_tokens is not None:
        bound = "" if goal.max_tokens is None else f" of {goal.max_tokens:,}"
        rows["tokens"] = f"{spent.tokens:,}{bound}"
    if spent.cost_micros or goal.max_cost_micros is not None:
        bound = "" if goal.max_cost_micros is None else f" of {goal.max_cost_micros / MICROS:g}"
        rows["cost"] = f"{spent.cost_micros / MICROS:g}{bound}"
    if spent.fallbacks and not (status.result is not None and status.result.decisions):
        rows["by rules"] = what_rules_decided(spent)
    return rows


def cost_table(spent: Mapping[Purpose, Usage]) -> RenderableType:
    """Lay out what was spent, by purpose, and how much of it on working together."""
    if not any(usage.tokens or usage.cost_micros for usage in spent.values()):
        return Text("No tokens and no money were spent.", style="dim")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("spent for")
    for head in ("tokens in", "cached", "tokens out", "cost"):
        table.add_column(head, justify="right")
    total = _sum(spent.values())
    for name, usage in [*((purpose.value, spent[purpose]) for purpose in Purpose if purpose in spent), ("all", total)]:
        tokens = (f"{count:,}" for count in (usage.tokens_in, usage.tokens_cached, usage.tokens_out))
        table.add_row(name, *tokens, f"{usage.cost_micros / MICROS:g}")
    together = _sum(usage for purpose, usage in spent.items() if purpose in COMMUNICATION)
    share = together.tokens / total.tokens if total.tokens else together.cost_micros / total.cost_micros
    return Group(table, Text(f"{share:.0%} of it for working together, the rest for tasks and nested teams", style="dim"))


def call_table(asked: Sequence[DecisionCall]) -> RenderableType:
    """Lay out what models were asked, in the order of what was decided; what is as in the row above is left out."""
    table, nested = (
        Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim"),
        len({one.comm_id for one in asked}) > 1,
    )
    for head in (*(["group"] if nested else []), "turn", "agent", "decided", "asked to", "came to"):
        table.add_column(head)
    for head in ("s", "tokens in", "out"):
        table.add_column(head, justify="right")
    above: DecisionCall | None = None
    for one in asked:
        is_new = above is None or replace(one, call=above.call) != above
        what = [*([one.comm_id] if nested else []), str(one.turn or ""), one.agent_id, shown_in_line(one.decided)]
        call = one.call
        told = " ".join(filter(None, (call.came_to.replace("_", " "), call.about)))
        came_to = Text(shown_in_line(told), style="" if call.came_to == TAKEN else "yellow")
        figures = (f"{call.milliseconds / 1_000:.1f}", f"{call.usage.tokens_in:,}", f"{call.usage.tokens_out:,}")
        table.add_row(*(what if is_new else [""] * len(what)), shown_in_line(call.purpose), came_to, *figures)
        above = one
    return table


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, NOTHING)


def goal_table(found: Sequence[GoalStatus], width: int, *, heads: bool = True) -> RenderableType:
    """Lay out goals in `width` columns, one a row, or each in two lines where a row is too long; only what was asked for is cut."""
    if width < _LEAST_ROW_WIDTH:
        return Group(*(line for status in found for line in _goal_lines(status)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True, show_header=heads)
    for head in ("goal", "accepted", "status", "turns"):
        table.add_column(head, no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True, ratio=1)
    for status in found:
        turns = turns_of(status)
        table.add_row(
            status.record.goal.goal_id,
            local_time(status.record.accepted_at),
            _coloured(status),
            "" if turns is None else str(turns),
            in_one_row(status.record.goal.goal),
        )
    return table


def _goal_lines(status: GoalStatus) -> tuple[Text, Text]:
    goal = status.record.goal
    head = Text.assemble(goal.goal_id, "  ", _coloured(status))
    what = Text.assemble("  ", (local_time(status.record.accepted_at), "dim"), "  ", in_one_row(goal.goal))
    what.no_wrap, what.overflow = True, "ellipsis"
    return head, what


def _coloured(status: GoalStatus) -> Text:
    standing = standing_of(status)
    return Text(standing, style="green" if standing == "concluded" else "yellow" if status.result is None else "red")


def local_time(at: datetime) -> str:
    """Write a time by this machine's clock."""
    here = at.replace(tzinfo=at.tzinfo or UTC).astimezone()
    return here.strftime("%Y-%m-%d %H:%M:%S")


@command(goal, "cancel")
async def cancel(
    goal_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The goal's id or its unique beginning.", show_default=False)
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="As an admin: all goals of this user.", show_default=False)
    ] = None,
    why: Annotated[str, typer.Option(help="The reason that goes on record.")] = "",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a goal and every team that works for it, or all goals of a user, including goals that have not begun."""
    if (goal_id is None) is (user is None):
        raise typer.BadParameter("Give either the ID of a goal or --user.")
    terminal = Terminal(as_json=as_json)
    await (cancel_user_goals(url, UserId(user), why, terminal) if user else cancel_goal(url, goal_id or "", why, terminal))
