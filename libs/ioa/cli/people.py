"""`ioa waiting` and `ioa answer`: the open items of people, and answers to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.cli.command import TextCommand, command
from ioa.cli.options import Url
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal, read_stdin
from ioa.client.client import Client
from ioa.client.documents import told
from ioa.client.questions import OpenQuestion, answer_question, is_question, questions_waiting
from ioa.client.seat import Awaited, PersonReply, PersonSeat, TooLateError, item_of, people_in, why_too_late
from ioa.client.waiting import AwaitedDocument, waiting_for_anybody
from ioa.errors import InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Said
from ioa.group.forms import Blank, in_words
from ioa.group.state import Ask
from ioa.hosting.place import PATIENCE
from ioa.protocol.team import person_of
from ioa.protocol.texts import check_texts

waiting = typer.Typer()
answer = typer.Typer()

As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="The person: what `human` names, or the role.", show_default="the person that is asked"
    ),
]


@command(waiting)
async def show_waiting(terminal: Terminal, person: As = None, url: Url = None) -> None:
    """List the open items of people: turns to speak, decisions, conclusions, and questions to the user."""
    questions: Sequence[OpenQuestion] = ()
    async with _open(url) as (system, network):
        if person is None:
            turns = [one async for one in waiting_for_anybody(system)]
            questions = [one async for one in questions_waiting(system)]
        else:
            turns = [one async for one in PersonSeat(network, person, SystemClock()).awaited()]
    if terminal.as_json:
        terminal.document([*(told(AwaitedDocument.of(one)) for one in turns), *(told(one) for one in questions)])
        return
    for lines in (*map(in_words_of, turns), *map(question_in_words, questions)):
        terminal.tell(lines)
    if turns or questions:
        terminal.note('`ioa answer ID "TEXT"` answers, or with `--choose` where there are options.')
    else:
        terminal.print(f"Nothing waits for {person or 'anybody'}.")


@command(answer, cls=TextCommand)
async def give_answer(
    terminal: Terminal,
    item: Annotated[str, typer.Argument(metavar="ID", help="The item, as `ioa waiting` lists it.")],
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="The words, taken as they are; - reads them from standard input.")
    ] = "",
    choose: Annotated[
        str | None,
        typer.Option(metavar="X", help="The choice: an option, an exit, the next speaker, or several, separated by commas."),
    ] = None,
    fields: Annotated[
        list[str], typer.Option("--field", metavar="NAME=VALUE", help="What a form is filled in with; several times.")
    ] = [],  # noqa: B006
    passes: Annotated[bool, typer.Option("--pass", help="Say nothing in this turn, or leave a decision to its default.")] = False,
    person: As = None,
    url: Url = None,
) -> None:
    """Answer as a person, or as the user what a group or a task asks.

    The first answer counts. The same answer again is accepted; a later, different answer is rejected.

    The item alone sends a passed draft again.
    """
    reply = read_reply(read_stdin() if text == "-" else text, choose, fields, passes=passes)
    async with _open(url) as (system, network):
        if person is None and await is_question(system, item):
            await answer_question(system, item, _answer_in(reply))
            terminal.show({"item": item}, f"Taken: {item}.")
            return
        who = person or await who_answers(system, item)
        seq = await PersonSeat(network, who, SystemClock()).answer(item, reply)
    terminal.show({"item": item, "as": who, "seq": seq}, f"Taken: {item} of {who}, entry {seq}.")


def _answer_in(reply: PersonReply) -> str:
    """Return the answer to a question, which is a text or an option.

    Raises:
        InvalidInputError: It is neither, or both.
    """
    if reply.fields or bool(reply.text) == bool(reply.choose):
        raise InvalidInputError("A question is answered by a text, or by --choose and an option.")
    return reply.choose or reply.text


def read_reply(text: str, choose: str | None, fields: Sequence[str], *, passes: bool = False) -> PersonReply:
    """Parse an answer.

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
    return PersonReply(text, choose, pairs, passes)


async def who_answers(system: Client, item: str) -> str:
    """Return the person that an item waits for: with the floor in its turn, or that spoke in it, or the group's only person.

    Raises:
        InvalidInputError: It is not one person.
        TooLateError: It waits for none of several people, and none spoke in it.
    """
    comm_id, turn = item_of(item)
    state = (await system.group(comm_id)).state
    people = people_in(state)
    asked = [one for one in people if turn == state.turn and one in state.floor]
    if not asked and len(people) > 1:
        said = [one.entry.event.message.header for one in await system.group_entries(comm_id) if isinstance(one.entry.event, Said)]
        asked = [one for one in people if any((header.sender, header.turn) == (one, turn) for header in said)]
        if not asked:
            raise TooLateError(why_too_late(state, turn), ())
    asked = asked or list(people)
    if len(asked) != 1:
        among = f"one of {', '.join(map(person_of, asked))}" if asked else "nobody"
        raise InvalidInputError(f"{item} may be answered by {among}.", hint="Say whose answer it is: --as NAME.")
    return person_of(asked[0])


_ASKS = {"say": "to speak", "decide": "to decide", "conclude": "to state the conclusion"}
_ABOUT: Mapping[Ask, str] = {
    "exit": "where the group goes on",
    "speaker": "who speaks next",
    "review": "whether this draft is passed",
    "watch": "whether to step in",
}


def in_words_of(awaited: Awaited) -> str:
    """Describe an item that waits for a person."""
    waits, offered = AwaitedDocument.of(awaited), awaited.offer
    place = f" at {waits.node}" if waits.node else ""
    about = f" {_ABOUT[offered.about]}" if offered.about else ""
    lines = [f"{waits.item}  {waits.person} is {_ASKS[awaited.kind]}{about}{place}"]
    lines.append(f"    {continued(awaited.goal)}")
    lines += [f"    {continued(prompt)}" for prompt in waits.told]
    lines += [f"    {waits.last.sender}: {continued(waits.last.content)}"] if waits.last else []
    lines += ["    what was passed is said again by the item alone"] if waits.again else []
    lines += ["    what you say is a draft: others hear it once it is passed"] if waits.draft else []
    lines += [f"    your words: {continued(guard)}" for guard in waits.guards]
    lines += [f"    --choose {shown_in_line(' | '.join(waits.options))}"] if waits.options else []
    lines += [f"    --field {blank.name}=…  {_asked_for(blank)}" for blank in offered.form]
    lines += [f"    --field members=…  to {choice}: some of {', '.join(names)}" for choice, names in waits.members.items()]
    default = f", then {shown_in_line(waits.default)}" if waits.default else ""
    lines += [f"    until {waits.until:%Y-%m-%d %H:%M} UTC{default}"] if waits.until else []
    return "\n".join(lines)


def question_in_words(asked: OpenQuestion) -> str:
    """Describe a question to the user."""
    who = f"task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    lines = [f"{asked.item}  {who} asks{f' the {asked.role}' if asked.role else ''}: {continued(asked.text)}"]
    lines += [f"    --choose {shown_in_line(' | '.join(asked.options))}"] if asked.options else []
    return "\n".join((*lines, f"    until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}"))


def _asked_for(blank: Blank) -> str:
    told = shown_in_line(in_words(blank))
    return told if blank.required else f"{told}; it may be left out"


@asynccontextmanager
async def _open(url: str | None) -> AsyncIterator[tuple[Client, NatsAgentNetwork]]:
    async with open_connection(await reach(url), patience=PATIENCE) as client:
        yield Client(client), NatsAgentNetwork(client)
