"""The worker's end: open what the first message says, then answer one request after the other until the starter is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO, Protocol

from ioa_discovery.worker_messages import Answered, Failed, Ready, Refused, Reply, packed, read

_PR_SET_PDEATHSIG = 1


class Servant(Protocol):
    """What a worker has opened."""

    @property
    def state(self) -> object:
        """What the starter is told of it."""
        ...

    def answer(self, request: object) -> object:
        """Do what is asked."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def serve(opened: Callable[[object], Servant]) -> None:
    """Serve the pipes of standard input and output until the starter closes them. `opened` opens what the first message says."""
    source, sink = _take_pipes()
    _end_with_starter()
    first = read(source)
    if first is None:
        return
    try:
        servant = opened(*first)
    except Exception as error:
        # An error of ours says more; it is not imported here, since that would bring half of the library.
        code, message = getattr(error, "wire_code", "internal"), getattr(error, "message", f"{type(error).__name__}: {error}")
        _send(sink, Refused(code, message, getattr(error, "hint", "")))
        return
    _send(sink, Ready(servant.state))
    while (request := read(source)) is not None:
        _send(sink, _reply(servant, *request))
    servant.close()


def _reply(servant: Servant, request: object) -> Reply:
    try:
        return Answered(servant.answer(request))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}")


def _send(sink: BinaryIO, reply: Reply) -> None:
    try:
        sink.write(packed(reply))
        sink.flush()
    except BrokenPipeError:
        # Nobody is left to answer. Not by sys.exit, which would flush the broken pipe once more.
        os._exit(0)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes for messages; what a library prints goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return source, sink


def _end_with_starter() -> None:
    """End when the starter is killed, even in the middle of a long call, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
