"""`ioa waiting` and `ioa answer`: the open items of people, and answers to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.cli.command import TextCommand, command
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
from ioa.group.forms import in_words
from ioa.group.state import Ask
from ioa.hosting.place import PATIENCE
from ioa.protocol.team import person_of
from ioa.protocol.texts import check_texts

waiting = typer.Typer()
answer = typer.Typer()

_ASKS = {"say": "to speak", "decide": "to decide", "conclude": "to state the conclusion"}
_ABOUT: Mapping[Ask, str] = {
    "exit": "where the group goes on",
    "speaker": "who speaks next",
    "review": "whether this draft is passed",
    "watch": "whether to step in",
}

Person = Annotated[str | None, typer.Option(show_default="the person that is asked")]


@command(waiting)
async def show_waiting(terminal: Terminal, *, person: Person = None, url: str | None = None) -> None:
    """List the open items of people: turns to speak, decisions, conclusions, and questions to the user.

    Args:
        person (--as NAME): The person: what `human` names, or the role.
    """
    async with open_connection(await reach(url), patience=PATIENCE) as connection:
        if person is None:
            system = Client(connection)
            turns = [one async for one in waiting_for_anybody(system)]
            questions = [one async for one in questions_waiting(system)]
        else:
            turns, questions = [one async for one in PersonSeat(NatsAgentNetwork(connection), person, SystemClock()).awaited()], []
    if terminal.as_json:
        terminal.document([*(told(AwaitedDocument.of(one)) for one in turns), *map(told, questions)])
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
    item: str,
    text: str = "",
    *,
    choose: str | None = None,
    fields: Sequence[str] = (),
    passes: bool = False,
    person: Person = None,
    url: str | None = None,
) -> None:
    """Answer as a person, or as the user what a group or a task asks.

    The first answer counts. The same answer again is accepted; a later, different answer is rejected.

    The item alone sends a passed draft again.

    Args:
        item (ID): The item, as `ioa waiting` lists it.
        text ([TEXT]): The words, taken as they are; - reads them from standard input.
        choose (X): The choice: an option, an exit, the next speaker, or several, separated by commas.
        fields (--field NAME=VALUE): What a form is filled in with; several times.
        passes (--pass): Say nothing in this turn, or leave a decision to its default.
        person (--as NAME): The person: what `human` names, or the role.
    """
    reply = read_reply(read_stdin() if text == "-" else text, choose, fields, passes=passes)
    async with open_connection(await reach(url), patience=PATIENCE) as connection:
        system = Client(connection)
        if person is None and await is_question(system, item):
            if reply.fields or bool(reply.text) == bool(reply.choose):
                raise InvalidInputError("A question is answered by a text, or by --choose and an option.")
            await answer_question(system, item, reply.choose or reply.text)
            terminal.show({"item": item}, f"Taken: {item}.")
            return
        person = person or await who_answers(system, item)
        seq = await PersonSeat(NatsAgentNetwork(connection), person, SystemClock()).answer(item, reply)
    terminal.show({"item": item, "as": person, "seq": seq}, f"Taken: {item} of {person}, entry {seq}.")


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


def in_words_of(awaited: Awaited) -> str:
    """Describe an item that waits for a person."""
    waits, offered = AwaitedDocument.of(awaited), awaited.offer
    place = f" at {waits.node}" if waits.node else ""
    about = f" {_ABOUT[offered.about]}" if offered.about else ""
    default = f", then {shown_in_line(waits.default)}" if waits.default else ""
    lines = [continued(waits.goal), *map(continued, waits.told)]
    lines += [f"{waits.last.sender}: {continued(waits.last.content)}"] if waits.last else []
    lines += ["what was passed is said again by the item alone"] * waits.again
    lines += ["what you say is a draft: others hear it once it is passed"] * waits.draft
    lines += [f"your words: {continued(guard)}" for guard in waits.guards]
    lines += [f"--choose {shown_in_line(' | '.join(waits.options))}"] if waits.options else []
    for blank in offered.form:
        lines.append(f"--field {blank.name}=…  {shown_in_line(in_words(blank))}{'' if blank.required else '; it may be left out'}")
    lines += [f"--field members=…  to {choice}: some of {', '.join(names)}" for choice, names in waits.members.items()]
    lines += [f"until {waits.until:%Y-%m-%d %H:%M} UTC{default}"] if waits.until else []
    return _item(f"{waits.item}  {waits.person} is {_ASKS[awaited.kind]}{about}{place}", lines)


def question_in_words(asked: OpenQuestion) -> str:
    """Describe a question to the user."""
    asker = f"task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    options = [f"--choose {shown_in_line(' | '.join(asked.options))}"] if asked.options else []
    until = f"until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}"
    role = f" the {asked.role}" if asked.role else ""
    return _item(f"{asked.item}  {asker} asks{role}: {continued(asked.text)}", [*options, until])


def _item(head: str, lines: Sequence[str]) -> str:
    return "\n".join((head, *(f"    {line}" for line in lines)))
