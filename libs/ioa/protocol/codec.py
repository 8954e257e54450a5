"""Encoding of everything that travels between the parts: msgpack of pydantic models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgpack
from pydantic import ValidationError
from pydantic_core import to_json

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.model import Carrier, Model
from ioa.protocol.texts import check_texts, in_words

MAX_PAYLOAD_BYTES = 1_000_000
"""Maximum bytes of a NATS message; larger content travels by reference. The server's default limit is 1 MiB."""

MAX_ANSWER_BYTES = MAX_PAYLOAD_BYTES + 16_000
"""Maximum bytes of the reply to a request: a stored message of the largest size and its description."""

MAX_MESSAGE_BYTES = 512_000
"""Maximum bytes of a group's message, so that its log entry, which also contains the state, fits."""

_LONG_LIST, _LONGEST_LIST = b"\xdc", b"\xdd"
"""First byte of the head of a list that claims more than 15 elements."""

M = TypeVar("M", bound=Model)


def encode(model: Model, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
    """Encode a model.

    Raises:
        PayloadTooLargeError: It would not fit into one message.
        InvalidInputError: A text cannot be written in UTF-8, such as half of a surrogate pair, or a number is too large.
    """
    try:
        if isinstance(model, Carrier):
            data = encode_value({**model.model_dump(mode="json", exclude={"data"}), "data": model.data})
        else:
            data = encode_value(model.model_dump(mode="json"))
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"A text of this {type(model).__name__} cannot be written in UTF-8: {error.reason}.") from None
    except OverflowError:
        raise InvalidInputError(f"A number of this {type(model).__name__} is larger than any that can be written.") from None
    check_size(data, max_payload_bytes, type(model).__name__)
    return data


def encode_value(value: object) -> bytes:
    """Encode plain data."""
    data: bytes = msgpack.packb(value)
    return data


def encode_around(fields: Mapping[str, object], encoded: bytes) -> bytes:
    """Encode a map whose innermost last value is None, and replace None by encoded data."""
    return encode_value(fields)[:-1] + encoded


def encode_list(encoded: Sequence[bytes]) -> bytes:
    """Encode a list of encoded elements."""
    head: bytes = msgpack.Packer().pack_array_header(len(encoded))
    return head + b"".join(encoded)


def decode_value(data: bytes) -> Any:
    """Decode plain data in time linear in its size.

    Raises:
        InvalidInputError: It is not msgpack, or contains an extension type.
    """
    try:
        if _LONG_LIST in data or _LONGEST_LIST in data:  # msgpack allocates a list by its claimed length: check that it is complete
            unpacker = msgpack.Unpacker(max_buffer_size=len(data))
            unpacker.feed(data)
            unpacker.skip()
        return msgpack.unpackb(data, strict_map_key=True, max_ext_len=0)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None


def decode(kind: type[M], data: bytes, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> M:
    """Decode and validate a model that was stored.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed.
        InvalidInputError: It is not msgpack, or not this kind of model; the message names the first wrong field.
    """
    check_size(data, max_payload_bytes, kind.__name__)
    return validate(kind, decode_value(data))


def receive(kind: type[M], data: bytes, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> M:
    """Decode and validate a model that was sent, and reject texts that nothing can store.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed.
        InvalidInputError: As in `decode`, or a text contains the character zero.
    """
    check_size(data, max_payload_bytes, kind.__name__)
    raw = decode_value(data)
    try:
        if b"\0" in data and b"\\u0000" in to_json(raw, bytes_mode="base64"):
            check_texts(raw, kind.__name__)
    except (RecursionError, ValueError):
        raise InvalidInputError("The payload is nested too deep.") from None
    return validate(kind, raw)


def read_field(data: bytes, name: str) -> Any:
    """Return one field of an encoded model as plain data; the fields after it are not decoded.

    Raises:
        InvalidInputError: It is not msgpack, or has no such field.
    """
    unpacker = msgpack.Unpacker(strict_map_key=True)
    unpacker.feed(data)
    try:
        for _ in range(unpacker.read_map_header()):
            if unpacker.unpack() == name:
                return unpacker.unpack()
            unpacker.skip()
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None
    raise InvalidInputError(f"The payload has no {name}.")


def validate(kind: type[M], raw: object) -> M:
    """Build a model from plain data.

    Raises:
        InvalidInputError: The message names the first wrong field.
    """
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise InvalidInputError(f"This is no valid {kind.__name__}: {in_words(error, 'payload')}.") from None


def decode_json(kind: type[M], data: bytes) -> M:
    """Decode and validate a model that travels as JSON.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed.
        InvalidInputError: It is not JSON, or not this kind of model; the message names the first wrong field.
    """
    check_size(data, MAX_PAYLOAD_BYTES, kind.__name__)
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise InvalidInputError(f"This is no valid {kind.__name__}: {in_words(error, 'payload')}.") from None


def check_size(data: bytes, max_payload_bytes: int, what: str) -> None:
    """Reject a payload that is too large.

    Raises:
        PayloadTooLargeError: With both sizes.
    """
    if len(data) > max_payload_bytes:
        raise PayloadTooLargeError(
            f"{what} has {len(data):,} bytes; {max_payload_bytes:,} are allowed.",
            hint="Send large content as a file: it travels by reference.",
        )
