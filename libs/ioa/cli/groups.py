"""Listing, showing and replaying groups."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.command import command
from ioa.cli.conversation import ConversationView, task_table
from ioa.cli.following import show_deciders
from ioa.cli.options import AsJson, Everything, Limit, Listing, OpenOnly, Url
from ioa.cli.paging import ListView, list_pages
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.client.client import Client
from ioa.client.documents import EntryDocument, GroupDocument, StateDocument, TaskDocument, told
from ioa.client.history import conversation
from ioa.client.replay import replayed
from ioa.client.transcript import Transcript
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.requests import GroupSnapshot
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Phase

app = typer.Typer()

_STYLES = {Phase.CONCLUDED: "green", Phase.FAILED: "red", Phase.CANCELLED: "red"}


async def find_group(system: NatsSystemClient, start: str) -> CommId:
    """Complete the id of a group, or else of a goal, which stands for the group that works for it.

    Raises:
        NotFoundError: No group's id begins so, and no goal's; or the goal has no group yet.
        InvalidInputError: Several do.
    """
    try:
        return await system.find_group(start)
    except NotFoundError as error:
        unknown = error
    with suppress(NotFoundError):
        goal = await system.goal(await system.find_goal(start))
        if goal.standing is not None:
            return goal.record.goal.comm_id
        unknown = NotFoundError(f"The goal {start} has no group yet.", hint="`ioa goals` shows what it waits for.")
    raise unknown


@command(app)
async def groups(
    comm_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Show the group with this id, or the group of this goal; a unique prefix is enough.",
            show_default=False,
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Check each recorded state of the group with the state machine.")
    ] = False,
    limit: Limit = 50,
    everything: Everything = False,
    open_only: OpenOnly = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the groups as a tree, the newest goal first, or show one: its nested groups, its tasks, and every message in order.

    Exits 1 if --replay finds a state that differs from the recorded one.
    """
    terminal = Terminal(as_json=as_json)
    if comm_id is None:
        if replay:
            raise InvalidInputError("--replay needs the id of a group.", hint="`ioa groups` lists them.")
        await list_groups(url, Listing(limit, everything, open_only), terminal)
    elif replay:
        await replay_group(url, comm_id, terminal)
    else:
        await show_group(url, comm_id, terminal)


async def list_groups(url: str | None, asked: Listing, terminal: Terminal) -> None:
    """List groups: one page, or all pages as they are read."""

    def show(groups: Sequence[GroupSnapshot], _is_first: bool) -> None:
        for tree in _trees(groups):
            terminal.print(tree)

    nothing = "No group is open." if asked.open_only else 'No group yet. A goal opens one: ioa run "GOAL"'
    more = "There are more: --limit N lists those of more goals, --all lists all."
    view = ListView("group", GroupDocument.of, show, nothing, more)
    async with open_reached_system(url) as system:

        async def read(before: int | None) -> tuple[Sequence[GroupSnapshot], int | None]:
            page = await system.groups(limit=asked.page, before=before, open_only=asked.open_only)
            return page.groups, page.before

        await list_pages(read, view, asked, terminal)


async def show_group(url: str | None, comm_id: str, terminal: Terminal) -> None:
    """Show a group's tree, its tasks and its messages, with those of nested groups between them."""
    async with open_reached_system(url) as system:
        comm_id = await find_group(system, comm_id)
        entries = await conversation(system, comm_id)
        standings = [await system.group(one) for one in dict.fromkeys(stored.entry.state.comm_id for stored in entries)]
    if terminal.as_json:
        transcript = Transcript()
        for stored in entries:
            transcript.read(stored)
        terminal.document(
            {
                "groups": [told(GroupDocument.of(one, transcript.known_tasks(one.state.comm_id))) for one in standings],
                "entries": [told(EntryDocument.of(stored)) for stored in entries],
            }
        )
        return
    for tree in _trees(standings):
        terminal.print(tree)
    terminal.print(Text())
    _show_conversation(terminal, entries)
    for one in standings:
        if one.state.comm_id == comm_id:
            show_deciders(terminal, one.state.decisions)


async def show_states(url: str | None, goal_id: str, at: int, terminal: Terminal) -> None:
    """Show the states of the groups of a goal after an entry, as a tree."""
    async with open_reached_system(url) as system:
        client = Client(system)
        states = await client.state(await system.find_goal(goal_id), at=at)
    if terminal.as_json:
        terminal.document({"groups": [told(StateDocument.of(state)) for state in states.values()]})
        return
    if not states:
        terminal.print(Text("There was no group yet.", style="dim"))
    for tree in _trees([GroupSnapshot(seq=at, state=state, charter=None) for state in states.values()]):
        terminal.print(tree)
    for state in states.values():
        waiting = (
            f"{', '.join(state.floor)} may speak in turn {state.turn}" if state.floor else f"nobody may speak in turn {state.turn}"
        )
        tasks = [f"{task.task_id} of {task.assignee}: {TaskDocument.of(task).status}" for task in state.tasks]
        lines = [] if state.phase.is_terminal else [waiting]
        for line in [*lines, *tasks]:
            terminal.print(Text.assemble((f"{state.comm_id}  ", "dim"), line))


async def replay_group(url: str | None, comm_id: str, terminal: Terminal) -> None:
    """Show a group's messages while the state machine processes its log.

    Raises:
        ReplayError: A recorded state differs from the computed one.
    """
    async with open_reached_system(url) as system:
        entries = await conversation(system, await find_group(system, comm_id))
    view = ConversationView(terminal)
    for stored in replayed(entries):
        view.show(stored)
    groups = len({stored.entry.state.comm_id for stored in entries})
    if terminal.as_json:
        terminal.line("replayed", entries=len(entries), groups=groups, reproduced=True)
    else:
        text = f"{len(entries)} entries of {groups} group{'s' if groups > 1 else ''} replayed: every state is reproduced"
        terminal.print(Text(), Text(text, style="green"))


def _show_conversation(terminal: Terminal, entries: Sequence[StoredEntry]) -> None:
    view = ConversationView(terminal, excerpt=None)
    for stored in entries:
        view.show(stored)
    tasks = view.transcript.tasks()
    if tasks and not terminal.as_json:
        terminal.print(Text(), task_table(tasks))


def _trees(standings: Sequence[GroupSnapshot]) -> list[Tree]:
    """One tree for each group whose parent is not shown."""
    shown = {standing.state.comm_id: standing for standing in standings}
    roots = [one for one in standings if one.state.parent is None or one.state.parent.comm_id not in shown]
    return [_tree(root, standings) for root in roots]


def _tree(standing: GroupSnapshot, all_of_them: Sequence[GroupSnapshot], into: Tree | None = None) -> Tree:
    label = _label(standing)
    tree = Tree(label, guide_style="dim") if into is None else into.add(label)
    for child in all_of_them:
        if child.state.parent is not None and child.state.parent.comm_id == standing.state.comm_id:
            _tree(child, all_of_them, tree)
    return tree


def _label(standing: GroupSnapshot) -> Text:
    state = standing.state
    label = Text(overflow="ellipsis", no_wrap=True)
    label.append(state.comm_id)
    label.append(f"  {state.phase}", style=_STYLES.get(state.phase, "yellow"))
    serves = f"  for {state.parent.task_id}" if state.parent else ""
    label.append(f"{serves}  {_count(state.turns_taken, 'turn')}, {_tasks(state)}, led by {state.owner}", style="dim")
    if standing.charter is not None:
        label.append(f"  {' '.join(standing.charter.goal.split())}")
    return label


def _tasks(state: GroupState) -> str:
    closed = state.tasks_given - len(state.unfinished_tasks)
    return f"{closed} of {_count(state.tasks_given, 'task')} closed"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
