"""`ioa waiting` and `ioa answer`: the open items of people, and answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.system_clock import SystemClock
from ioa.cli.command import TextCommand, command
from ioa.cli.output.terminal import Terminal, read_stdin
from ioa.client.client import Client
from ioa.client.documents import told
from ioa.client.seat import PersonReply, PersonSeat, TooLateError, why_too_late
from ioa.client.shown_questions import parse_item, question_in_words
from ioa.client.waiting import AwaitedDocument, asked_in_words, people_in, waiting_for_people
from ioa.errors import InvalidInputError
from ioa.foreign_text import continued
from ioa.protocol.teams.team_file import person_of
from ioa.protocol.texts import check_texts

waiting = typer.Typer()
answer = typer.Typer()

Person = Annotated[str | None, typer.Option(show_default="the person that is asked")]


@command(waiting)
async def show_waiting(system: Client, terminal: Terminal, *, person: Person = None) -> None:
    """List the open items of people: turns to speak, decisions, conclusions, and questions to the user.

    Args:
        person (--as NAME): The person: what `human` names, or the role.
    """
    awaited = waiting_for_people(system) if person is None else _seat(system, person).awaited()
    turns = [AwaitedDocument.of(one) async for one in awaited]
    questions = await system.waiting() if person is None else []
    if terminal.as_json:
        terminal.document([*map(told, turns), *map(told, questions)])
        return
    for turn in turns:
        terminal.print(describe_item(turn.item, asked_in_words(turn), turn.goal))
    for question in questions:
        terminal.print(describe_item(question.item, question_in_words(question)))
    if turns or questions:
        terminal.note('`ioa answer ID "TEXT"` answers, `--choose` chooses, and `--field NAME=VALUE` fills in a form.')
    else:
        terminal.print(f"Nothing waits for {person or 'anybody'}.")


@command(answer, cls=TextCommand)
async def give_answer(
    system: Client,
    terminal: Terminal,
    item: str,
    text: str = "",
    *,
    choose: str | None = None,
    fields: Sequence[str] = (),
    passes: bool = False,
    person: Person = None,
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
    person = person or await who_answers(system, item)
    if person is None:
        if reply.fields or bool(reply.text) == bool(reply.choose):
            raise InvalidInputError("A question is answered by a text, or by --choose and an option.")
        await system.answer(item, reply.choose or reply.text)
        terminal.show({"item": item}, f"Taken: {item}.")
        return
    seq = await _seat(system, person).answer(item, reply)
    terminal.show({"item": item, "as": person, "seq": seq}, f"Taken: {item} of {person}, entry {seq}.")


def _seat(system: Client, person: str) -> PersonSeat:
    return PersonSeat(NatsAgentNetwork(system.connection), person, SystemClock())


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


async def who_answers(system: Client, item: str) -> str | None:
    """Return the person that an item waits for: with the floor in its turn, or the group's only person.

    None if the item is a question to the user of the goal.

    Raises:
        InvalidInputError: The item is not valid, or several people can answer.
        NotFoundError: There is no such group.
        TooLateError: The turn is over, and the group has several people.
    """
    comm_id, turn, task_id = parse_item(item)
    if task_id is not None:
        return None
    state = (await system.group(comm_id)).state
    people = people_in(state)
    if not people or (turn == state.turn and state.question is not None):
        return None
    asked = [one for one in people if turn == state.turn and one in state.floor]
    if not asked and len(people) > 1:
        raise TooLateError(why_too_late(state, turn), ())
    if len(asked) > 1:
        among = ", ".join(map(person_of, asked))
        raise InvalidInputError(f"{item} may be answered by one of {among}.", hint="Say whose answer it is: --as NAME.")
    return person_of([*asked, *people][0])


def describe_item(item: str, words: str, goal: str = "") -> str:
    """Return an item as text: the reference with the first line, and the other lines below it."""
    first, *others = words.split("\n")
    return "\n    ".join([f"{item}  {first}", *([continued(goal)] if goal else []), *others])
