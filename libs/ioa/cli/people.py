"""What waits for people, and answering it, each over one short connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from rich.text import Text

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.system_clock import SystemClock
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal
from ioa.client.seat import Awaited, Reply, Seat, awaited_of, item_of, people_in
from ioa.errors import InvalidInputError
from ioa.group.forms import in_words
from ioa.hosting.place import PATIENCE
from ioa.ports.system_client import SystemClient
from ioa.protocol.codec import check_texts
from ioa.protocol.messages import Discussion
from ioa.protocol.team import person_of


async def show_waiting(url: str | None, person: str | None, terminal: Terminal) -> None:
    """List what waits for one person, as its member; or for anybody, as a user sees it."""
    async with _open(url) as (system, network):
        if person is None:
            found = await _of_anybody(system)
        else:
            found = [one async for one in Seat(network, person, SystemClock()).awaited()]
    if terminal.as_json:
        terminal.document([document(one) for one in found])
        return
    for one in found:
        terminal.print(Text(_in_words(one)))
    if not found:
        terminal.print(Text(f"Nothing waits for {person or 'anybody'}."))


async def give_answer(url: str | None, item: str, reply: Reply, person: str | None, terminal: Terminal) -> None:
    """Say an answer, and tell where it stands in the log.

    Raises:
        InvalidInputError: It is not what is asked for, or nobody says whose answer it is.
        ConflictError: It came too late.
    """
    async with _open(url) as (system, network):
        who = person or await _who_answers(system, item)
        seq = await Seat(network, who, SystemClock()).answer(item, reply)
    if terminal.as_json:
        terminal.document({"item": item, "as": who, "seq": seq})
    terminal.print(Text(f"Taken: {item} of {who}, entry {seq}."))


def read_reply(text: str, choose: str | None, fields: Sequence[str]) -> Reply:
    """Make an answer of what a command was given.

    Raises:
        InvalidInputError: A field has no value, or a text cannot be sent.
    """
    pairs = dict[str, str]()
    for pair in fields:
        name, is_one, value = pair.partition("=")
        if not is_one or not name:
            raise InvalidInputError(f"--field {pair} fills nothing in.", hint="Write --field NAME=VALUE.")
        pairs[name] = value
    check_texts([text, choose or "", pairs], "answer")
    return Reply(text, choose, pairs)


def document(awaited: Awaited) -> dict[str, Any]:
    """Return what waits for a person as programs read it."""
    offered, last = awaited.offer, awaited.last
    words = last.payload if last is not None and isinstance(last.payload, Discussion) else None
    return {
        "item": awaited.item,
        "as": person_of(awaited.me),
        "kind": awaited.kind,
        "goal": awaited.goal,
        "comm_id": awaited.state.comm_id,
        "turn": awaited.state.turn,
        "node": awaited.part.node,
        "told": list(awaited.part.prompts),
        "until": awaited.until.isoformat() if awaited.until is not None else None,
        "options": list(offered.options) or [*offered.go, *offered.next_speakers],
        "default": offered.default or None,
        "fields": {blank.name: in_words(blank) for blank in offered.form},
        "again": bool(offered.again),
        "last": None if last is None or words is None else {"sender": last.header.sender, "content": words.content},
    }


async def _of_anybody(system: SystemClient) -> list[Awaited]:
    """Return what waits for any person in a group that is open."""
    found, before, complete = list[Awaited](), None, False
    while not complete:
        page = await system.groups(before=before, open_only=True)
        for group in page.groups:
            if group.charter is not None:
                waiting = [awaited_of(group.charter, group.state, person) for person in people_in(group.state)]
                found += [one for one in waiting if one is not None]
        before, complete = page.before, page.before is None
    return found


async def _who_answers(system: SystemClient, item: str) -> str:
    """Find out for whom an item waits, or has waited: whoever has the floor, else the only person of the group."""
    comm_id, turn = item_of(item)
    state = (await system.group(comm_id)).state
    people = people_in(state)
    asked = [one for one in people if turn == state.turn and one in state.floor] or people
    if len(asked) != 1:
        among = f"one of {', '.join(map(person_of, asked))}" if asked else "nobody"
        raise InvalidInputError(f"{item} may be answered by {among}.", hint="Say whose answer it is: --as NAME.")
    return person_of(asked[0])


def _in_words(awaited: Awaited) -> str:
    told, asks = document(awaited), {"say": "to speak", "decide": "to decide", "conclude": "to state the conclusion"}
    place = f" at {told['node']}" if told["node"] else ""
    lines = [f"{told['item']}  {told['as']} is {asks[awaited.kind]}{place}"]
    lines.append(f"    {awaited.goal}")
    lines += [f"    {prompt}" for prompt in told["told"]]
    lines += [f"    {told['last']['sender']}: {told['last']['content']}"] if told["last"] else []
    lines += ["    what was passed is said again by the item alone"] if told["again"] else []
    lines += [f"    --choose {' | '.join(told['options'])}"] if told["options"] else []
    lines += [f"    --field {name}=…  {what}" for name, what in told["fields"].items()]
    default = f", then {told['default']}" if told["default"] else ""
    lines += [f"    until {told['until']}{default}"] if told["until"] else []
    return "\n".join(lines)


@asynccontextmanager
async def _open(url: str | None) -> AsyncIterator[tuple[SystemClient, NatsAgentNetwork]]:
    settings, _ = await reach(url)
    async with open_connection(settings, patience=PATIENCE) as client:
        yield NatsSystemClient(client), NatsAgentNetwork(client)
