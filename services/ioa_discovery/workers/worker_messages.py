"""What discovery and the processes it owns say to each other: pickled values behind their length, over pipes.

Pickle, since both ends are the same release on the same machine and one started the other; nothing else can write into the
pipe. This module and those that a worker imports stay free of pydantic and NATS, so that a worker starts in a tenth of a second.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has opened what it was told to open, and answers requests from now on."""

    state: object


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The worker cannot open what it was told to open, and ends. `code` is the wire code of the error it stands for."""

    code: str
    message: str
    hint: str = ""


class Answered(NamedTuple):
    """The answer to the last request. A tuple, which is pickled faster than a frozen dataclass."""

    value: object


@dataclass(frozen=True, slots=True)
class Failed:
    """The last request failed; the worker goes on."""

    message: str


Reply = Ready | RequestRefused | Answered | Failed


def packed(value: object) -> bytes:
    """Return the frame of a value."""
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


def unpacked(body: bytes) -> object:
    """Return the value of a frame without its length."""
    return pickle.loads(body)  # noqa: S301 - the other end is this program


def read(stream: BinaryIO) -> tuple[object] | None:
    """Wait for the next value; None when the other end is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    [length] = LENGTH.unpack(head)
    body = stream.read(length)
    return (unpacked(body),) if len(body) == length else None
