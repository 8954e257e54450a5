"""Compare and set: read the last message of a subject from the stream's leader, and publish only if it has not changed.

A bucket of nats-py is a stream with one message for each subject. Its own handle reads from any replica, which may lag, and leaves
markers in place of removed keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress

from nats.js import JetStreamContext
from nats.js.api import Header, RawStreamMsg
from nats.js.errors import APIError, NotFoundError
from pydantic_core import from_json

from ioa.adapters.nats.wire.translated_errors import lost_race, unavailable_unless_answered
from ioa.errors import UnavailableError

_STORE_SECONDS = 5.0

LAST_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
"""A header for which nats-py has no name."""


def stream_of(bucket: str) -> str:
    """Return the stream of a bucket (NATS ADR-8)."""
    return f"KV_{bucket}"


def subject_of(bucket: str, key: str) -> str:
    """Return the subject of a key, or of all keys that match a pattern."""
    return f"$KV.{bucket}.{key}"


async def last_message(js: JetStreamContext, stream: str, subject: str) -> RawStreamMsg | None:
    """Read the last message on a subject, which may contain wildcards, from the leader; None if there is none."""
    with suppress(NotFoundError):
        return await js.get_msg(stream, subject=subject)
    return None


async def next_message(js: JetStreamContext, stream: str, subject: str, *, after: int) -> RawStreamMsg | None:
    """Read the first message after a sequence, on a subject that may contain wildcards, from the leader; None if there is none."""
    with suppress(NotFoundError):
        return await js.get_msg(stream, seq=after + 1, subject=subject, next=True)
    return None


async def publish_onto(
    js: JetStreamContext,
    stream: str,
    subject: str,
    data: bytes,
    *,
    last: int = 0,
    last_of: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> int | None:
    """Publish if the last message on the subject, or on the subjects `last_of`, has the sequence `last`; 0: there is none.

    Return the sequence of the new message; None if the last message differs.
    """
    expected = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last)} | ({} if last_of is None else {LAST_OF: last_of})
    expected[Header.EXPECTED_STREAM.value] = stream
    # nats-py's `publish` parses the reply into an object, which takes a quarter of the CPU time of an append.
    message = await js._nc.request(subject, data, timeout=_STORE_SECONDS, headers={**(headers or {}), **expected})  # noqa: SLF001
    reply = from_json(message.data)
    if "error" not in reply:
        return int(reply["seq"])
    error = APIError(**reply["error"])
    if lost_race(error):
        return None
    raise error


async def drawn_once(js: JetStreamContext, bucket: str, key: str, size_bytes: int, what: str) -> bytes:
    """Return the secret under a key of a bucket. The first replica that needs it creates it, again if it was removed.

    Raises:
        UnavailableError: The bucket does not answer, or the secret is being removed.
    """
    stream, subject = stream_of(bucket), subject_of(bucket, key)
    with unavailable_unless_answered(what):
        found = await last_message(js, stream, subject)
        if found is None or not found.data:  # `nats kv purge` leaves a marker
            await publish_onto(js, stream, subject, secrets.token_bytes(size_bytes), last=0 if found is None else found.seq or 0)
            found = await last_message(js, stream, subject)
    if found is None or not found.data:
        raise UnavailableError(f"{what} is gone.")
    return found.data


async def erase(js: JetStreamContext, bucket: str, key: str) -> None:
    """Remove a key, or all keys that match a pattern, without a marker."""
    await js.purge_stream(stream_of(bucket), subject=subject_of(bucket, key))
