"""The worker's end: open what the first message says, then answer one request after the other until the starter is gone."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from typing import BinaryIO, Protocol

from ioa.errors import IoaError, row_of
from ioa.parent import end_with_parent
from ioa_discovery.workers.worker_messages import Answered, Failed, Ready, Reply, RequestRefused, packed, read


class RequestHandler(Protocol):
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


def serve(opened: Callable[[object], RequestHandler], *, prepare: Callable[[], None] = lambda: None) -> None:
    """Serve the pipes of standard input and output until the starter closes them.

    Args:
        opened: Opens what the first message says.
        prepare: What can be done before there is one; it refuses like `opened`.
    """
    source, sink = _take_pipes()
    _end_with_starter()
    refused = _refusal(prepare)
    first = read(source)
    if first is None:
        return
    servants: list[RequestHandler] = []
    refused = refused or _refusal(lambda: servants.append(opened(*first)))
    if refused is not None:
        _send(sink, refused)
        return
    [servant] = servants
    gc.freeze()  # what was imported and opened stays: nobody needs to look through it for garbage
    _send(sink, Ready(servant.state))
    while (request := read(source)) is not None:
        _send(sink, _reply(servant, *request))
    servant.close()


def _refusal(attempt: Callable[[], None]) -> RequestRefused | None:
    """Return why something cannot be done; None if it is done."""
    try:
        attempt()
    except IoaError as error:
        return RequestRefused(row_of(error).wire_code, error.message, error.hint)
    except Exception as error:  # noqa: BLE001 - the parent is told by the reply
        return RequestRefused(row_of(IoaError).wire_code, f"{type(error).__name__}: {error}", "")
    return None


def _reply(servant: RequestHandler, request: object) -> Reply:
    try:
        return Answered(servant.answer(request))
    except Exception as error:  # noqa: BLE001 - the parent is told by the reply
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
    end_with_parent(signal.SIGKILL)
