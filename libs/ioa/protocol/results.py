"""Encoding of results: JSON, or msgpack on request."""

from __future__ import annotations

from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, decode_json, encode
from ioa.protocol.goals import GoalResult, ResultFormat

_JSON_BEGINS = b"{"
"""In msgpack this byte is a number, so no result begins with it."""


def encode_result(result: GoalResult, wanted: ResultFormat = ResultFormat.JSON) -> bytes:
    """Encode a result; if its JSON does not fit into a message, it is msgpack.

    Raises:
        PayloadTooLargeError: It would not fit into one message at all.
        InvalidInputError: A text in it cannot be written in UTF-8.
    """
    packed = encode(result)
    if wanted is ResultFormat.MSGPACK:
        return packed
    data = result.model_dump_json().encode()
    return data if len(data) <= MAX_PAYLOAD_BYTES else packed


def decode_result(data: bytes) -> GoalResult:
    """Decode a result by its first byte.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is no result.
    """
    return decode_json(GoalResult, data) if data.startswith(_JSON_BEGINS) else decode(GoalResult, data)
