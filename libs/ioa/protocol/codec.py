"""Encoding of everything that travels between the parts: msgpack of pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgpack
from pydantic import ValidationError

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.model import Model

MAX_PAYLOAD_BYTES = 1_000_000
"""What one NATS message may hold; larger content goes by reference. The server's own default limit is 1 MiB."""

MAX_MESSAGE_BYTES = 512_000
"""What one message of a group chat may hold, so that its log entry, which also carries the state, fits as well."""

M = TypeVar("M", bound=Model)


def encode(model: Model, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
    """Encode a model.

    Raises:
        PayloadTooLargeError: It would not fit into one message.
    """
    data: bytes = msgpack.packb(model.model_dump(mode="json"))
    check_size(data, max_payload_bytes, type(model).__name__)
    return data


def encode_around(fields: Mapping[str, int | str], last: str, encoded: bytes) -> bytes:
    """Encode a map whose last value, under the name `last`, is encoded already."""
    head: bytes = msgpack.packb({**fields, last: None})
    return head[:-1] + encoded  # None is the one byte that the value takes the place of


def decode(kind: type[M], data: bytes, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> M:
    """Decode and validate a model.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is not msgpack, or not this kind of model; the message names the first field that is wrong.
    """
    check_size(data, max_payload_bytes, kind.__name__)
    try:
        raw = msgpack.unpackb(data, strict_map_key=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None
    return validate(kind, raw)


def validate(kind: type[M], raw: object) -> M:
    """Build a model from plain data.

    Raises:
        InvalidInputError: The message names the first field that is wrong.
    """
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "payload"
        why = first["msg"].removeprefix("Value error, ")  # what pydantic puts before the words of our own validators
        raise InvalidInputError(f"This is no valid {kind.__name__}: {where}: {why}.") from None


def check_size(data: bytes, max_payload_bytes: int, what: str) -> None:
    """Refuse what is too large.

    Raises:
        PayloadTooLargeError: With both sizes.
    """
    if len(data) > max_payload_bytes:
        raise PayloadTooLargeError(
            f"{what} has {len(data):,} bytes; {max_payload_bytes:,} are allowed.",
            hint="Send large content as a file: it travels by reference.",
        )
