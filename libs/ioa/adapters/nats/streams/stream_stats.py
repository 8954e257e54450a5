"""The state of the streams: their names, subjects, sizes and queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, DiscardPolicy, StreamInfo
from nats.js.errors import APIError
from pydantic_core import from_json, to_json

from ioa.adapters.nats.streams.topology import CONSUMERS, DEAD, FILES, GOALS, LOG, OPEN, OUTCOMES, RESULTS, TIMERS, WORK
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.protocol import subjects
from ioa.protocol.standing import QueueStanding, StoreStanding, StreamStanding

_QUEUES = (GOALS, WORK, TIMERS)
_MEASURED = (*_QUEUES, LOG, RESULTS, DEAD, OUTCOMES, f"KV_{OPEN}", f"OBJ_{FILES}")
_MAX_QUEUES = 500
"""Maximum queues of a stream in a `StoreStanding`, those with most waiting messages, so that it fits into a message."""
_PAGE = 256
"""Consumers in one reply of nats-server."""
_TIMEOUT = timedelta(seconds=10)


async def stream_names(client: Client) -> set[str]:
    """Return the names of all streams.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    with unavailable_unless_answered("JetStream"):
        return {*((await _ask(client, "STREAM.NAMES", {})).get("streams") or ())}


async def subject_counts(client: Client, stream: str, pattern: str) -> Mapping[str, int]:
    """Return the subjects of a stream that match a pattern, with the number of messages of each.

    nats-server lists 100,000 subjects in one reply. Subjects that are removed between two replies can hide others.

    Raises:
        UnavailableError: The stream does not answer.
    """
    found = dict[str, int]()
    while True:
        with unavailable_unless_answered(f"The stream {stream}"):
            answer = await _ask(client, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": len(found)})
        page: Mapping[str, int] = answer["state"].get("subjects") or {}
        found |= page
        if not page or len(found) >= answer.get("total", 0):
            return found


async def read_streams(client: Client) -> Sequence[StreamStanding]:
    """Read the streams of goals, groups and files, and all of their queues.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    with unavailable_unless_answered("JetStream"):
        js = client.jetstream()
        found = {str(stream.config.name): stream for stream in await js.streams_info()}
        return [_standing(found[name], await _queues(js, name)) for name in _MEASURED if name in found]


async def read_standing(client: Client) -> StoreStanding:
    """Read all streams, the queues that are not idle, missing consumers, and the number of dead letters.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    js, dead = client.jetstream(), dict[str, int]()
    with unavailable_unless_answered("JetStream"):
        account = await js.account_info()
        listed = (await _ask(client, "STREAM.LIST", {}))["streams"] or ()
        streams = {str(stream.config.name): stream for stream in map(StreamInfo.from_response, listed)}
        queues = {name: await _queues(js, name) for name in streams}
        if DEAD in streams:
            dead = (await js.stream_info(DEAD, subjects_filter=subjects.ANY_DEAD)).state.subjects or {}
    present = {(stream, queue.name) for stream, several in queues.items() for queue in several}
    return StoreStanding(
        at=listed[0]["ts"] if listed else None,
        stored_bytes=account.storage,
        limit_bytes=max(0, account.limits.max_storage or 0),
        streams=tuple(_standing(stream, _busy(queues[name])) for name, stream in streams.items()),
        missing=tuple(
            f"{stream}/{name}"
            for stream, name, _ in CONSUMERS
            if stream in _QUEUES and stream in streams and (stream, name) not in present
        ),
        dead_letters={subject.rpartition(".")[2]: number for subject, number in dead.items()},
    )


async def _ask(client: Client, request: str, content: Mapping[str, object]) -> dict[str, Any]:
    message = await client.request(f"$JS.API.{request}", to_json(content), timeout=_TIMEOUT.total_seconds())
    answer: dict[str, Any] = from_json(message.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return answer


async def _queues(js: JetStreamContext, stream: str) -> Sequence[QueueStanding]:
    """Read the durable consumers of a queue; none of another stream."""
    found, is_last = list[ConsumerInfo](), stream not in _QUEUES
    while not is_last:
        page = await js.consumers_info(stream, offset=len(found))
        found += page
        is_last = len(page) < _PAGE
    return [
        QueueStanding(
            name=one.name,
            waiting=one.num_pending or 0,
            taken=one.num_ack_pending or 0,
            again=one.num_redelivered or 0,
            readers=one.num_waiting or 0,
            most_taken=max(0, one.config.max_ack_pending or 0),
        )
        for one in found
    ]


def _busy(queues: Sequence[QueueStanding]) -> Sequence[QueueStanding]:
    return sorted((one for one in queues if one.waiting or one.taken), key=lambda one: -one.waiting)[:_MAX_QUEUES]


def _standing(stream: StreamInfo, queues: Sequence[QueueStanding]) -> StreamStanding:
    """Describe a stream. A stream that removes its oldest messages has no limit."""
    is_limited = stream.config.discard is DiscardPolicy.NEW
    return StreamStanding(
        name=str(stream.config.name),
        messages=stream.state.messages,
        stored_bytes=stream.state.bytes,
        limit_bytes=max(0, stream.config.max_bytes or 0) if is_limited else 0,
        schedules=bool(stream.config.allow_msg_schedules),
        queues=tuple(queues),
    )
