"""Encoding of everything that travels between the parts: msgpack of pydantic models."""

from __future__ import annotations

import gc
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgpack
from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.model import Carrier, Model

MAX_PAYLOAD_BYTES = 1_000_000
"""What one NATS message may hold; larger content goes by reference. The server's own default limit is 1 MiB."""

MAX_ANSWER_BYTES = MAX_PAYLOAD_BYTES + 16_000
"""What the answer to a request may hold: a message of a stream, which may be as large as any, and what is told of it."""

MAX_MESSAGE_BYTES = 512_000
"""What one message of a group chat may hold, so that its log entry, which also carries the state, fits as well."""

MAX_TEXT_CHARS = 256_000
"""What any one text may have that comes from outside, whatever it is for; most kinds of texts have less."""

_WALKED_BYTES = 65_536
"""In so short a payload a refused text is looked for where it stands, for an error that names its field."""
_FEW_BYTES = 4_096
"""So short a payload is no million containers."""
_LONG = b"\xdb\x00"
"""How the head of a long text begins: with what it is, and the first of four bytes of its length."""
_LONG_LIST, _LONGEST_LIST = b"\xdc", b"\xdd"
"""How the heads of lists begin that claim more than 15 elements."""
_ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_HEAD_BYTES = 16_384
"""In how many bytes of what carries bytes those begin."""
_PLACE_CHARS = 64
"""How much is told of a name in a place that is wrong."""

M = TypeVar("M", bound=Model)


def encode(model: Model, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
    """Encode a model.

    Raises:
        PayloadTooLargeError: It would not fit into one message.
        InvalidInputError: A text in it cannot be written in UTF-8, such as half of a surrogate pair, or a number is too large.
    """
    try:
        if isinstance(model, Carrier):
            fields = model.model_dump(mode="json", exclude={"data"})
            data = encode_around({**fields, "data": None}, encode_value(model.data))
        else:
            data = msgpack.packb(model.model_dump(mode="json"))
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"A text of this {type(model).__name__} cannot be written in UTF-8: {error.reason}.") from None
    except OverflowError:
        raise InvalidInputError(f"A number of this {type(model).__name__} is larger than any that can be written.") from None
    check_size(data, max_payload_bytes, type(model).__name__)
    return data


def encode_around(fields: Mapping[str, object], encoded: bytes) -> bytes:
    """Encode a map whose very last value, in the innermost map that stands last, is None and encoded already."""
    head: bytes = msgpack.packb(fields)
    return head[:-1] + encoded  # None is the one byte that the value takes the place of


def encode_value(value: object) -> bytes:
    """Encode plain data."""
    data: bytes = msgpack.packb(value)
    return data


def decode_value(data: bytes) -> Any:
    """Decode plain data that was encoded here; what comes from elsewhere is decoded as a model."""
    return msgpack.unpackb(data, strict_map_key=False)


def encode_map_head(count: int) -> bytes:
    """Encode how many items the map has whose encoded items follow."""
    head: bytes = msgpack.Packer().pack_map_header(count)
    return head


def encode_items(fields: Mapping[str, object]) -> bytes:
    """Encode what a map holds, for a map that is put together of several."""
    return encode_value(fields)[len(encode_map_head(len(fields))) :]


def encode_list(encoded: Sequence[bytes]) -> bytes:
    """Encode a list whose elements are encoded already."""
    head: bytes = msgpack.Packer().pack_array_header(len(encoded))
    return head + b"".join(encoded)


def decode(kind: type[M], data: bytes, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES, without: tuple[str, ...] = ()) -> M:
    """Decode and validate a model.

    Args:
        kind: Which one.
        data: As it was encoded.
        max_payload_bytes: What it may have.
        without: Leads by names of fields to one that is left out, so that nothing is made of what it holds.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is not msgpack, or not this kind of model; the message names the first field that is wrong.
    """
    raw = _unpacked(kind, data, max_payload_bytes)
    if without:
        _take_out(raw, without)
    return validate(kind, raw)


def receive(kind: type[M], data: bytes, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> M:
    """Decode and validate what somebody sent, and refuse texts that nothing can store; what is stored already is just decoded.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is not msgpack, not this kind of model, or a text of it is refused by `check_text`.
    """
    return validate(kind, _received(kind, data, max_payload_bytes))


def receive_apart(
    kind: type[M], data: bytes, apart: tuple[str, ...], *, max_payload_bytes: int = MAX_PAYLOAD_BYTES
) -> tuple[M, object]:
    """Receive a model without one of its fields, which leads there by names and nobody else is to be told; and that as it was sent.

    Raises:
        PayloadTooLargeError: As in `receive`.
        InvalidInputError: As in `receive`.
    """
    raw = _received(kind, data, max_payload_bytes)
    taken = _take_out(raw, apart)
    return validate(kind, raw), taken


def _take_out(raw: object, path: tuple[str, ...]) -> object:
    """Take a field out of plain data, to which names lead, and return what it held; None if it is not there."""
    inner = raw
    for name in path[:-1]:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner.pop(path[-1], None) if isinstance(inner, dict) else None


def _received(kind: type[Model], data: bytes, max_payload_bytes: int) -> object:
    if issubclass(kind, Carrier):
        _check_carried(data)
    raw = _unpacked(kind, data, max_payload_bytes)
    try:
        if refused := _refused_text(data, raw):
            if len(data) <= _WALKED_BYTES:
                check_texts(raw, kind.__name__)
            check_text(refused)
    except (RecursionError, ValueError):
        raise InvalidInputError("The payload is nested too deep.") from None
    return raw


def _refused_text(data: bytes, raw: object) -> str:
    """Find a text that `check_text` refuses, without a walk through what may have a million elements; empty if there is none.

    msgpack reads nothing but UTF-8. Bytes that are no text may hold anything, so that what looks like a long one is confirmed. A
    zero stands mostly in a number, which JSON does not show.
    """
    for text in () if len(data) <= MAX_TEXT_CHARS else _like_long_texts(data):
        if len(text) > MAX_TEXT_CHARS and _holds_long_texts(data):
            return text
    written = to_json(raw, bytes_mode="base64", fallback=repr) if b"\0" in data else b""
    return "\0" if b"\\u0000" in written and _ZERO.search(written) else ""


def _like_long_texts(data: bytes) -> Iterator[str]:
    """Yield what may be texts of so many characters, by their heads: each byte is in two of them at most.

    No UTF-8 has both bytes with which such a head begins, so that a long text lies between two heads, or what looks like them. Of a
    text whose length ends in these bytes that is what stands before it.
    """
    parts = data.split(_LONG)
    if max(map(len, parts)) <= MAX_TEXT_CHARS:
        return
    begin = 0
    for part in parts:
        if len(part) > MAX_TEXT_CHARS:
            for at in (begin + 3, begin):
                if data[max(at - 5, 0) : at - 3] == _LONG:
                    yield data[at : at + int.from_bytes(data[at - 4 : at], "big")].decode("utf-8", "ignore")
        begin += len(part) + len(_LONG)


def _holds_long_texts(data: bytes) -> bool:
    """Whether any text of a payload that can be read has more bytes than a text may have characters."""
    try:
        _unpack(data, max_str_len=MAX_TEXT_CHARS)
    except ValueError:
        return True
    return False


def _unpacked(kind: type[Model], data: bytes, max_payload_bytes: int) -> object:
    check_size(data, max_payload_bytes, kind.__name__)
    try:
        _check_is_whole(data)
        return _unpack(data, ext_hook=_refuse_extension, max_ext_len=0)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None


def _check_is_whole(data: bytes) -> None:
    """See that the lists of a payload are all there, before any is made: room is made for as many elements as its head claims.

    A thousand heads in each other, of which no element follows, made a thousand lists of 32,767 each: 115 MB, of 32 kB.
    """
    if _LONG_LIST in data or _LONGEST_LIST in data:
        unpacker = msgpack.Unpacker(max_buffer_size=len(data))
        unpacker.feed(data)
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            raise ValueError("Unpack failed: incomplete input") from None


def _refuse_extension(_code: int, _data: bytes) -> object:
    """Refuse extension types, of which nothing of ours is one; those that are not empty, times too, are before by `max_ext_len`.

    Each is an object of Python, which takes far longer to make than anything else of as few bytes.
    """
    raise ValueError("extension types are not read")


def _check_carried(data: bytes) -> None:
    """Refuse what carries something else than bytes that stand last, before it is read: only they may be many.

    Raises:
        InvalidInputError: It is not msgpack, or not like that.
    """
    unpacker = msgpack.Unpacker(strict_map_key=True, max_array_len=0, max_map_len=0)  # of what is unpacked: a field's name
    unpacker.feed(data[:_HEAD_BYTES])
    try:
        for _ in range(unpacker.read_map_header()):
            if unpacker.unpack() == "data":
                at = unpacker.tell()
                size = {0xC4: 1, 0xC5: 2, 0xC6: 4}.get(data[at], 0) if at < len(data) else 0
                if not size or at + 1 + size + int.from_bytes(data[at + 1 : at + 1 + size], "big") != len(data):
                    break
                return
            unpacker.skip()
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None
    raise InvalidInputError(
        f"The payload has no `data` of bytes that stand last, behind at most {_HEAD_BYTES:,} bytes of the rest."
    )


def _unpack(data: bytes, **bounds: Any) -> object:
    """Unpack, and keep the collector of garbage from walking through a million containers again and again while they are made."""
    if len(data) <= _FEW_BYTES:
        return msgpack.unpackb(data, strict_map_key=True, **bounds)
    collects = gc.isenabled()
    gc.disable()
    try:
        return msgpack.unpackb(data, strict_map_key=True, **bounds)
    finally:
        if collects:
            gc.enable()


def read_field(data: bytes, name: str) -> Any:
    """Read one field of an encoded model as plain data, and nothing that stands behind it.

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


def count_elements(data: bytes, names: Collection[str], most: int) -> int:
    """Count what the lists hold that some fields of an encoded model are, together, up to `most`; nothing of them is read.

    Raises:
        InvalidInputError: It is not msgpack, or one of these fields is no list.
    """
    unpacker = msgpack.Unpacker(strict_map_key=True, max_array_len=0, max_map_len=0)  # of what is unpacked: a field's name
    unpacker.feed(data)
    count = 0
    try:
        for _ in range(unpacker.read_map_header()):
            if unpacker.unpack() not in names:
                unpacker.skip()
                continue
            elements = unpacker.read_array_header()
            count += elements
            if count >= most:
                return most
            for _ in range(elements):
                unpacker.skip()
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise InvalidInputError(f"The payload is not valid msgpack: {error or type(error).__name__}.") from None
    return count


def read_texts(data: bytes, names: Collection[str]) -> dict[str, str]:
    """Read some fields of an encoded model that are texts, and nothing else of it; what is no such text, or no model, has none."""
    unpacker = msgpack.Unpacker(max_array_len=0, max_map_len=0, max_ext_len=0)  # of what is unpacked
    unpacker.feed(data)
    found: dict[str, str] = {}
    with suppress(ValueError, TypeError, RecursionError, msgpack.UnpackException):
        for _ in range(unpacker.read_map_header()):
            if (name := unpacker.unpack()) not in names:
                unpacker.skip()
            elif isinstance(value := unpacker.unpack(), str):
                found[name] = value
            else:
                found.pop(name, None)  # of a name that stands there twice the last value counts, as where it is decoded
    return found


def validate(kind: type[M], raw: object) -> M:
    """Build a model from plain data.

    Raises:
        InvalidInputError: The message names the first field that is wrong.
    """
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise _invalid(kind, error) from None


def decode_json(kind: type[M], data: bytes) -> M:
    """Decode and validate a model that travels as JSON.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is not JSON, or not this kind of model; the message names the first field that is wrong.
    """
    check_size(data, MAX_PAYLOAD_BYTES, kind.__name__)
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise _invalid(kind, error) from None


def _invalid(kind: type[Model], error: ValidationError) -> InvalidInputError:
    return InvalidInputError(f"This is no valid {kind.__name__}: {in_words(error, 'payload')}.")


def in_words(error: ValidationError, whole: str, *, most: int = 1) -> str:
    """Say what is wrong with data, such as `limits.max_turns: Input should be a valid integer`.

    Args:
        error: What pydantic found.
        whole: What the data is called, for an error that is of no single field.
        most: How many of the errors are told.

    Returns:
        A text that is short, whatever the data is, and how many errors it has.
    """
    return "; ".join(f"{where or whole}: {why[:_MAX_WHY_CHARS]}" for where, why in problems_of(error)[:most])[:_MAX_WORDS_CHARS]


def problems_of(error: ValidationError) -> list[tuple[str, str]]:
    """Return each error that pydantic found: the field, with dots, and why; very many, which take long, are told as one."""
    if error.error_count() > _MOST_ERRORS:
        return [("", f"{error.error_count():,} mistakes are in it")]
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(".".join(str(part)[:_PLACE_CHARS] for part in one["loc"]), why_of(one)) for one in found]


def why_of(one: ErrorDetails) -> str:
    """Return what is wrong by one error of pydantic's; our own validators speak for themselves."""
    return one["msg"].removeprefix("Value error, ")


_MAX_WHY_CHARS, _MAX_WORDS_CHARS, _MOST_ERRORS = 300, 1_000, 1_000
CUT = " […]"
"""What stands at the end of a text that was cut."""


def shortened(text: str, max_bytes: int) -> str:
    """Cut a text that is too long, and replace what `check_text` refuses, so that it can travel."""
    data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(data) > max_bytes:
        return data[: max_bytes - len(CUT.encode())].decode("utf-8", "ignore") + CUT
    return data.decode("utf-8")


def check_text(text: str) -> None:
    """Refuse a text that nothing can store although Python and JSON can spell it, or that is too long to be a text.

    That is half a surrogate pair, the character zero, and more than 256,000 characters.

    Raises:
        InvalidInputError: It begins with what the message shows.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"The text {text[:80]!a} is not valid Unicode.") from None
    if "\0" in text:
        raise InvalidInputError(f"The text {text[:80]!a} holds the character zero.")
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInputError(
            f"The text {text[:80]!a} has {len(text):,} characters; {MAX_TEXT_CHARS:,} are allowed.",
            hint="Send large content as a file: it travels by reference.",
        )


def check_texts(value: object, where: str) -> None:
    """Check every text in plain data, as what was sent is read at first: names too.

    Args:
        value: Of maps, lists, texts and whatever else.
        where: How the data is called; errors name the innermost map's key, or the place in its list.

    Raises:
        InvalidInputError: It says where.
        RecursionError: The data is nested too deep.
    """
    match value:
        case str():
            try:
                check_text(value)
            except InvalidInputError as error:
                raise InvalidInputError(f"{where}: {error.message}", hint=error.hint) from None
        case list():
            for number, one in enumerate(value):
                check_texts(one, f"{where}.{number}")
        case dict():
            for name, one in value.items():
                check_texts(name, where)
                check_texts(one, str(name)[:_PLACE_CHARS])


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
