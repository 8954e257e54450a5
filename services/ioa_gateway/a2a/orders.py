"""A message that begins a task, as the goal that is launched for it."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Collection
from typing import Any

from a2a.types.a2a_pb2 import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict

from ioa.client.seat import PersonReply
from ioa.errors import InvalidInputError
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import Artifact, plain_file_name
from ioa.protocol.ids import AgentId, GoalId, PoolId
from ioa_gateway.a2a.asking import AdmittedRequest
from ioa_gateway.calls import ApiCall
from ioa_gateway.routes.seats import ReplyOrder

CONTEXT = "a2a-context"
"""The label that holds the conversation of a goal."""


def goal_id_of(message: Message, pool: PoolId | None, call: ApiCall) -> GoalId:
    """Derive the id of a message's goal: a message that is sent again means the same goal."""
    return call.caller.goal_id("a", pool or "", message.message_id)


def check_media_types(message: Message) -> None:
    """See that every part is of a kind that exists.

    Raises:
        ContentTypeNotSupportedError: One is not.
    """
    for part in message.parts:
        kind = part.media_type.partition(";")[0].strip().lower()
        if kind and not kind.startswith("text/") and mimetypes.guess_extension(kind) is None:
            raise ContentTypeNotSupportedError(f"{part.media_type[:100]!r} is no media type that is known here.")


async def order_of_message(message: Message, asked: AdmittedRequest) -> GoalOrder:
    """Make the goal of a message: its texts say what is wanted, and everything else is an input.

    A URL is an input that holds it: whether it is fetched, and from where, is for an agent to decide and not for an entrance.

    Raises:
        InvalidParamsError: There is no text.
        InvalidInputError: The goal is invalid.
        PayloadTooLargeError: A file is too large.
    """
    pool, call = asked.pool, asked.call
    goal_id = goal_id_of(message, pool, call)
    texts, inputs = list[str](), list[Artifact | InlineInput | str]()
    for number, part in enumerate(message.parts, 1):
        if part.WhichOneof("content") == "text" and not part.filename:
            texts.append(part.text)
        else:
            inputs.append(await _input(part, number, goal_id, call))
    if not "".join(texts).strip():
        raise InvalidParamsError("The message has no text that says what is wanted.")
    return GoalOrder(
        goal="\n\n".join(texts),
        goal_id=goal_id,
        agent=None if pool is None else AgentId(pool),
        inputs=tuple(inputs),
        labels={CONTEXT: message.context_id or goal_id},
    )


def data_of_message(message: Message) -> dict[str, object]:
    """Return what the parts of data of a message say together.

    Raises:
        InvalidInputError: It cannot be read.
    """
    given: dict[str, object] = {}
    for part in message.parts:
        if part.WhichOneof("content") == "data":
            given |= _data_of(part) if part.data.HasField("struct_value") else {}
    return given


def reply_of(text: str, given: dict[str, object], options: Collection[str]) -> PersonReply:
    """Read what a person answers: its texts as its words, and what it chooses and fills in as data, as `POST …/messages` takes it.

    Words that are one of the options, and nothing else, choose it: many clients send nothing but text.

    Raises:
        InvalidInputError: It is no answer.
    """
    fields = given.get("fields")
    if isinstance(fields, dict):
        given["fields"] = {name: _as_written(value) for name, value in fields.items()}
    if not given and text.strip() in options:
        return PersonReply(choose=text.strip())
    return PersonReply(**dict(validate(ReplyOrder, {"text": text, **given})))


def text_of_message(message: Message) -> str:
    """Return the texts of a message, as they are."""
    return "\n\n".join(part.text for part in message.parts if part.WhichOneof("content") == "text")


def _data_of(part: Part) -> Any:
    try:
        return MessageToDict(part.data)
    except ValueError as error:  # a number beyond those that there are
        raise InvalidInputError(f"A part of data cannot be read: {error}") from None


def _as_written(value: object) -> object:
    """Write what JSON has as a value the way a person does."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else value


async def _input(part: Part, number: int, goal_id: GoalId, call: ApiCall) -> Artifact | InlineInput:
    named = plain_file_name(part.filename) if part.filename else ""
    match part.WhichOneof("content"):
        case "raw":
            name = named or f"part-{number}{mimetypes.guess_extension(part.media_type) or '.bin'}"
            return await call.client.upload(name, part.raw, media_type=part.media_type or None, goal_id=goal_id)
        case "url":
            return InlineInput(name=f"{named or f'part-{number}'}.url", text=part.url)
        case "data":
            return InlineInput(name=named or f"part-{number}.json", text=json.dumps(_data_of(part), ensure_ascii=False))
        case "text":
            return InlineInput(name=named, text=part.text)
        case _:
            raise InvalidParamsError(f"Part {number} holds nothing: it has a text, raw, a url or data.")
