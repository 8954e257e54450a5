"""What waits for people, and answering it, each over one short connection."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.beside import beside
from ioa.cli.command import TextCommand, command
from ioa.cli.following import tell_result
from ioa.cli.options import AsJson, Url
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal, read_stdin
from ioa.client.documents import told
from ioa.client.questions import OpenQuestion, QuestionDocument, answer_question, is_question, questions_waiting
from ioa.client.seat import Awaited, PersonReply, PersonSeat, TooLateError, item_of, people_in, why_too_late
from ioa.client.waiting import AwaitedDocument, naming, waiting_for_anybody
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Said
from ioa.group.forms import Blank, in_words
from ioa.group.policy.watching import nameable
from ioa.group.state import Ask
from ioa.hosting.place import PATIENCE
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import GoalName
from ioa.protocol.messages import Conclusion, Decision, Discussion
from ioa.protocol.team import TeamSpec, person_of
from ioa.protocol.texts import check_texts
from ioa.runtime.exit_code import ExitCode

waiting = typer.Typer()
answer = typer.Typer()

As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="The person: what `human` names, or the role.", show_default="the person that is asked"
    ),
]


@command(waiting)
async def show_waiting(person: As = None, url: Url = None, as_json: AsJson = False) -> None:
    """List the open items of people: turns to speak, decisions, conclusions, and questions to the user."""
    terminal = Terminal(as_json=as_json)
    asked: Sequence[OpenQuestion] = ()
    async with _open(url) as (system, network):
        if person is None:
            found = [one async for one in waiting_for_anybody(system)]
            asked = [one async for one in questions_waiting(system)]
        else:
            found = [one async for one in PersonSeat(network, person, SystemClock()).awaited()]
    if terminal.as_json:
        terminal.document([*(told(AwaitedDocument.of(one)) for one in found), *(told(QuestionDocument.of(one)) for one in asked)])
        return
    for lines in (*map(in_words_of, found), *map(question_in_words, asked)):
        terminal.tell(lines)
    if found or asked:
        terminal.note('`ioa answer ID "TEXT"` answers, or with `--choose` where there are options.')
    else:
        terminal.print(Text(f"Nothing waits for {person or 'anybody'}."))


@command(answer, cls=TextCommand)
async def give_answer(
    item: Annotated[str, typer.Argument(metavar="ID", help="The item, as `ioa waiting` lists it.", show_default=False)],
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="The words, taken as they are; - reads them from standard input.")
    ] = "",
    choose: Annotated[
        str | None,
        typer.Option(
            "--choose",
            metavar="X",
            help="The choice: an option, an exit, the next speaker, or several, separated by commas.",
            show_default=False,
        ),
    ] = None,
    fields: Annotated[
        list[str],
        typer.Option("--field", metavar="NAME=VALUE", help="What a form is filled in with; several times.", show_default=False),
    ] = [],  # noqa: B006
    passes: Annotated[bool, typer.Option("--pass", help="Say nothing in this turn, or leave a decision to its default.")] = False,
    person: As = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Answer as a person, or as the user what a group or a task asks.

    The first answer counts. The same answer again is accepted; a later, different answer is rejected.

    The item alone sends a passed draft again.
    """
    reply = read_reply(read_stdin() if text == "-" else text, choose, fields, passes=passes)
    terminal = Terminal(as_json=as_json)
    async with _open(url) as (system, network):
        if person is None and await is_question(system, item):
            await answer_question(system, item, _answer_in(reply))
            terminal.document({"item": item}) if terminal.as_json else terminal.print(Text(f"Taken: {item}."))
            return
        who = person or await who_answers(system, item)
        seq = await PersonSeat(network, who, SystemClock()).answer(item, reply)
    if terminal.as_json:
        terminal.document({"item": item, "as": who, "seq": seq})
    terminal.print(Text(f"Taken: {item} of {who}, entry {seq}."))


def _answer_in(reply: PersonReply) -> str:
    """Return the answer to a question, which is a text or an option.

    Raises:
        InvalidInputError: It is neither, or both.
    """
    if reply.fields or bool(reply.text) == bool(reply.choose):
        raise InvalidInputError("A question is answered by a text, or by --choose and an option.")
    return reply.choose or reply.text


ReadLine = Callable[[str], Awaitable[str]]
"""Asks for a line on the terminal."""


async def play(url: str | None, order: GoalOrder, files: Sequence[Path], role: str, out: Path, terminal: Terminal) -> ExitCode:
    """Publish a goal with its team, and take a person's part in it on this terminal, which shows what that person hears.

    Raises:
        InvalidInputError: No person plays this role, or this is no terminal.
    """
    person = _person_as(order, role)
    if not sys.stdin.isatty():
        raise InvalidInputError("--as asks on a terminal, and this is none.", hint="`ioa waiting` and `ioa answer` need none.")
    async with _open(url) as (system, network):
        goal = GoalName(await system.user(), await system.launch(order, files))
        terminal.note(f"goal {goal.goal_id}, as {person}")
        async with beside(
            take_part(PersonSeat(network, person, SystemClock()), goal, terminal.progress.tell, partial(_read_line, terminal))
        ):
            result = await system.wait_for_result(goal)
        return await tell_result(system, terminal, result, out)


async def take_part(seat: PersonSeat, goal: GoalName, tell: Callable[[str], object], read_line: ReadLine) -> None:
    """Tell what a person hears in a goal's group, and ask it for its turns, until the group ends."""
    async for one in seat.follow(goal.comm_id):
        if isinstance(one, Awaited):
            await _answered(seat, one, tell, read_line)
        elif isinstance(one.payload, Discussion | Conclusion | Decision):
            chosen = f"[{shown_in_line(one.payload.choice)}] " if isinstance(one.payload, Decision) else ""
            tell(f"{one.header.sender}: {chosen}{continued(one.payload.content)}")


async def _answered(seat: PersonSeat, awaited: Awaited, tell: Callable[[str], object], read_line: ReadLine) -> None:
    """Ask until an answer is taken, or comes too late."""
    tell(in_words_of(awaited))
    while True:
        try:
            await seat.answer(awaited.item, await _ask(awaited, read_line))
        except InvalidInputError as error:
            tell(f"{continued(error.message)} Once more:")
        except ConflictError as error:
            tell(continued(error.message))
            return
        else:
            return


async def _ask(awaited: Awaited, read_line: ReadLine) -> PersonReply:
    """Ask for what an answer needs, and for what it may have besides."""
    offered = awaited.offer
    if offered.again:
        return PersonReply()
    choices = offered.options or (*offered.go, *offered.next_speakers)
    ways = f"on to {shown_in_line(' | '.join(choices))} (or nothing)"
    choose = await read_line("choose" if offered.options else ways) if choices else ""
    text = await read_line("why" if offered.options else "you")
    fields = {blank.name: await read_line(f"{blank.name}, {_asked_for(blank)}") for blank in offered.form}
    if choose in naming(offered):
        fields["members"] = await read_line(f"whom of {', '.join(nameable(awaited.state, choose))}")
    return PersonReply(text, choose or None, {name: value for name, value in fields.items() if value})


async def _read_line(terminal: Terminal, asked: str) -> str:
    """Read a line from the terminal, as it is but for its end; nothing waits for it once the goal has ended."""
    terminal.progress.tell(f"{asked}>")
    loop, line = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    number = sys.stdin.fileno()

    def read() -> None:
        if not line.done():
            line.set_result(os.read(number, 65_536))

    loop.add_reader(number, read)
    try:
        data: bytes = await line
    finally:
        loop.remove_reader(number)
    if not data:
        raise NotFoundError("Standard input has ended; the group goes on.", hint="`ioa waiting` shows what is up to you.")
    return data.decode("utf-8", errors="replace").removesuffix("\n")


def _person_as(order: GoalOrder, role: str) -> str:
    assert isinstance(order.team, TeamSpec), "it was made of a team"
    people = {
        one.name: person_of(filling.agents[0])
        for one, filling in zip(order.team.policy.roles, order.team.fillings, strict=True)
        if one.human
    }
    if role not in people:
        raise InvalidInputError(f"No person plays {role}; people play {', '.join(people) or 'nothing'} in this team.")
    return people[role]


def read_reply(text: str, choose: str | None, fields: Sequence[str], *, passes: bool = False) -> PersonReply:
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
    return PersonReply(text, choose, pairs, passes)


async def who_answers(system: NatsSystemClient, item: str) -> str:
    """Find out for whom an item waits, or has waited: whoever has the floor or has spoken in it, else the group's only person.

    Raises:
        InvalidInputError: It is not one person.
        TooLateError: It waits for none of several people, and none has spoken in it.
    """
    comm_id, turn = item_of(item)
    state = (await system.group(comm_id)).state
    people = people_in(state)
    asked = [one for one in people if turn == state.turn and one in state.floor]
    if not asked and len(people) > 1:
        said = [one.entry.event.message.header for one in await system.entries(comm_id) if isinstance(one.entry.event, Said)]
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
    """Say what waits for a person, as it is listed."""
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
    """Say what a group or a task asks its user, as it is listed."""
    who = f"task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    lines = [f"{asked.item}  {who} asks{f' the {asked.role}' if asked.role else ''}: {continued(asked.text)}"]
    lines += [f"    --choose {shown_in_line(' | '.join(asked.options))}"] if asked.options else []
    return "\n".join((*lines, f"    until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}"))


def _asked_for(blank: Blank) -> str:
    told = shown_in_line(in_words(blank))
    return told if blank.required else f"{told}; it may be left out"


@asynccontextmanager
async def _open(url: str | None) -> AsyncIterator[tuple[NatsSystemClient, NatsAgentNetwork]]:
    settings, _ = await reach(url)
    async with open_connection(settings, patience=PATIENCE) as client:
        yield NatsSystemClient(client), NatsAgentNetwork(client)
