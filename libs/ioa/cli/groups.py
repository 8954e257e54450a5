"""`ioa groups`: lists groups, shows one, and replays its log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import typer
from rich.text import Text
from rich.tree import Tree

from ioa.cli.command import Limit, command
from ioa.cli.output.console import list_rows
from ioa.cli.output.conversation_output import ConversationView, read_transcript, task_table
from ioa.cli.output.results import show_deciders
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.client.documents import EntryDocument, GroupDocument, told
from ioa.client.history import conversation
from ioa.client.replay import replayed
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.requests import GroupSnapshot
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Phase

app = typer.Typer()

_STYLES = {Phase.CONCLUDED: "green", Phase.FAILED: "red", Phase.CANCELLED: "red"}


async def find_group(system: Client, start: str) -> CommId:
    """Complete the id of a group, or of a goal, which means the group that works for it.

    Raises:
        NotFoundError: No id of a group or a goal begins with it; or the goal has no group yet.
        InvalidInputError: Several do.
    """
    try:
        return await system.find_group(start)
    except NotFoundError as unknown:
        try:
            name = await system.find_goal(start)
        except NotFoundError:
            raise unknown from None
    if (await system.goal(name)).standing is None:
        raise NotFoundError(f"The goal {start} has no group yet.", hint="`ioa goals` shows its status.")
    return name.comm_id


@command(app)
async def groups(
    system: Client,
    terminal: Terminal,
    comm_id: str | None = None,
    *,
    replay: bool = False,
    limit: Limit = 50,
    open_only: bool = False,
) -> None:
    """List the groups as a tree, the newest goal first, or show one: its nested groups, its tasks, and every message in order.

    Exits 1 if --replay finds a state that differs from the recorded one.

    Args:
        comm_id (ID): Show the group with this id, or the group of this goal; a unique prefix is enough.
        replay: Check each recorded state of the group with the state machine.
    """
    if comm_id is not None:
        await (_replay_group if replay else _show_group)(system, terminal, comm_id)
        return
    if replay:
        raise InvalidInputError("--replay needs the id of a group.", hint="`ioa groups` lists them.")

    read = partial(system.groups, open_only=open_only)
    nothing = "No group is open." if open_only else 'No group yet. A goal opens one: ioa run "GOAL"'
    await list_rows(terminal, read, lambda page: page.groups, GroupDocument.of_group, _trees, limit=limit, nothing=nothing)


async def _show_group(system: Client, terminal: Terminal, start: str) -> None:
    """Show a group's tree, its tasks, and all messages in order, also of nested groups."""
    comm_id = await find_group(system, start)
    entries = await conversation(system, comm_id)
    found = [await system.group(one) for one in dict.fromkeys(stored.entry.state.comm_id for stored in entries)]
    if terminal.as_json:
        transcript = read_transcript(entries)
        documents = [told(GroupDocument.of_group(one, transcript.known_tasks(one.state.comm_id))) for one in found]
        terminal.document({"groups": documents, "entries": [told(EntryDocument.of(stored)) for stored in entries]})
        return
    terminal.print(*_trees(found), Text())
    view = ConversationView(terminal, excerpt=None)
    for stored in entries:
        view.show(stored)
    if tasks := view.transcript.tasks():
        terminal.print(Text(), task_table(tasks))
    for one in found:
        if one.state.comm_id == comm_id:
            show_deciders(terminal, one.state.decisions)


async def _replay_group(system: Client, terminal: Terminal, start: str) -> None:
    """Show a group's messages while the state machine processes its log.

    Raises:
        ReplayError: A recorded state differs from the computed one.
    """
    entries = await conversation(system, await find_group(system, start))
    view = ConversationView(terminal)
    for stored in replayed(entries):
        view.show(stored)
    groups = len({stored.entry.state.comm_id for stored in entries})
    if terminal.as_json:
        terminal.line("replayed", entries=len(entries), groups=groups, reproduced=True)
    text = f"{len(entries)} entries of {_count(groups, 'group')} replayed: every state is reproduced"
    terminal.print(Text(), Text(text, style="green"))


def _trees(found: Sequence[GroupSnapshot]) -> list[Tree]:
    """Return a tree for each group whose parent is not shown."""
    trees = {one.state.comm_id: Tree(_label(one), guide_style="dim") for one in found}
    roots: list[Tree] = []
    for one in found:
        parent = trees.get(one.state.parent.comm_id) if one.state.parent else None
        (roots if parent is None else parent.children).append(trees[one.state.comm_id])
    return roots


def _label(found: GroupSnapshot) -> Text:
    state = found.state
    task = f"  for {state.parent.task_id}" if state.parent else ""
    closed = f"{state.tasks_given - len(state.unfinished_tasks)} of {_count(state.tasks_given, 'task')} closed"
    return Text.assemble(
        state.comm_id,
        (f"  {state.phase}", _STYLES.get(state.phase, "yellow")),
        (f"{task}  {_count(state.turns_taken, 'turn')}, {closed}, led by {state.owner}", "dim"),
        f"  {' '.join(found.charter.goal.split())}" if found.charter else "",
        overflow="ellipsis",
        no_wrap=True,
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
