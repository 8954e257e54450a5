"""Requests of A2A that were authenticated, and conversion of their messages to goals and to answers of people."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from a2a.helpers import get_data_parts
from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError

from ioa.client.seat import PersonReply
from ioa.errors import InvalidInputError
from ioa.group.events import Event, Said
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import Artifact, Goal, plain_file_name
from ioa.protocol.ids import AgentId, GoalId, MessageId, PoolId, is_token
from ioa_gateway.api.seat_routes import ReplyOrder
from ioa_gateway.context import ApiCall

CONTEXT, MESSAGE = "a2a-context", "a2a-message"
"""The labels with the A2A context of a goal, and with the id of its message."""
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+( *;[\t -~]*)?", re.ASCII)


def is_old(headers: Mapping[str, str]) -> bool:
    """Return whether the client speaks A2A 0.3: it does not name version 1."""
    return headers.get("a2a-version", "").partition(".")[0] != "1"


def derive_goal_id(message: Message, pool: PoolId | None, call: ApiCall) -> GoalId:
    """Return the id of a message's goal. A repeated message has the same id."""
    return call.caller.goal_id("a", pool or "", message.message_id)


def derive_answer_id(message: Message, goal: Goal, call: ApiCall) -> MessageId:
    """Return the id of an answer in the log: a digest, and the message's own id if both are a valid id together."""
    content = json.dumps([call.caller.key_id, goal.comm_id, message.message_id])
    digest = "a" + hashlib.sha256(content.encode()).hexdigest()[:16]
    whole = f"{digest}-{message.message_id}"
    return MessageId(whole if is_token(whole) else digest)


def logged_id(event: Event) -> str:
    """Return the id of a message or an answer in the log; empty for another event."""
    return event.message.header.message_id if isinstance(event, Said) else getattr(event, "key", "")


def own_id(event: Event) -> str:
    """Return the client's id of an answer in the log; its id in the log, if that does not contain the client's."""
    logged = logged_id(event)
    return logged.partition("-")[2] or logged


async def create_order(message: Message, pool: PoolId | None, call: ApiCall) -> GoalOrder:
    """Return the goal of a message: its texts are the goal, all other parts are inputs. Without a text, the goal is their names.

    A URL becomes a file with the URL. The gateway does not fetch it.

    Raises:
        A2AError: A part is empty, or a media type is malformed.
        InvalidInputError: The goal is invalid.
        PayloadTooLargeError: A file is too large.
    """
    goal_id = derive_goal_id(message, pool, call)
    texts, inputs = list[str](), list[Artifact | InlineInput]()
    for number, part in enumerate(message.parts, 1):
        if part.WhichOneof("content") == "text" and not part.filename:
            texts.append(part.text)
        else:
            inputs.append(await _input(part, number, goal_id, call))
    return GoalOrder(
        goal="\n\n".join(texts).strip() or ", ".join(one.name for one in inputs),
        goal_id=goal_id,
        agent=None if pool is None else AgentId(pool),
        as_task=pool is not None,
        inputs=tuple(inputs),
        labels={CONTEXT: message.context_id or goal_id, MESSAGE: message.message_id},
    )


def message_data(message: Message) -> dict[str, object]:
    """Return the merged objects of a message's data parts.

    Raises:
        InvalidInputError: A part contains a number that is not finite.
    """
    return {name: value for found in _data(message.parts) if isinstance(found, dict) for name, value in found.items()}


def parse_reply(text: str, data: dict[str, object], options: Collection[str]) -> PersonReply:
    """Return a person's answer from a message's text and data, with the fields of `POST …/messages`.

    A text alone that equals an option chooses the option: many clients send only text.

    Raises:
        InvalidInputError: The answer is invalid.
    """
    fields = data.get("fields")
    if isinstance(fields, dict):
        data["fields"] = {name: _as_written(value) for name, value in fields.items()}
    if not data and text.strip() in options:
        return PersonReply(choose=text.strip())
    return PersonReply(**dict(validate(ReplyOrder, {"text": text, **data})))


def _data(parts: Sequence[Part]) -> list[Any]:
    try:
        return get_data_parts(parts)
    except ValueError as error:  # a number that is not finite
        raise InvalidInputError(f"A data part is invalid: {error}") from None


def _as_written(value: object) -> object:
    """Return a value of JSON as a person would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else value


async def _input(part: Part, number: int, goal_id: GoalId, call: ApiCall) -> Artifact | InlineInput:
    name = plain_file_name(part.filename) if part.filename else f"part-{number}"
    match part.WhichOneof("content"):
        case "raw":
            if part.media_type and not _MEDIA_TYPE.fullmatch(part.media_type):
                raise ContentTypeNotSupportedError(f"{part.media_type[:100]!r} is not a media type.")
            ending = "" if part.filename else mimetypes.guess_extension(part.media_type) or ".bin"
            return await call.client.upload(name + ending, part.raw, media_type=part.media_type or None, goal_id=goal_id)
        case "url":
            return InlineInput(name=f"{name}.url", text=part.url)
        case "data":
            text = json.dumps(_data([part])[0], ensure_ascii=False)
            return InlineInput(name=name if part.filename else f"{name}.json", text=text)
        case "text":
            return InlineInput(name=name, text=part.text)
        case _:
            raise InvalidParamsError(f"Part {number} has no content: text, raw, url or data.")
