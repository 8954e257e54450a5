"""How results travel: as JSON, which whoever asked can read with what their language brings along, or as msgpack on request."""

from __future__ import annotations

from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, decode_json, encode
from ioa.protocol.goals import GoalResult, ResultFormat

_JSON_BEGINS = b"{"
"""In msgpack this byte is a number, which no result is."""


def encode_result(result: GoalResult, wanted: ResultFormat = ResultFormat.JSON) -> bytes:
    """Encode a result. One whose JSON would not fit into a message, for its control characters take six bytes each, is msgpack.

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
    """Decode a result; its first byte tells how it is encoded.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is no result.
    """
    return decode_json(GoalResult, data) if data.startswith(_JSON_BEGINS) else decode(GoalResult, data)
