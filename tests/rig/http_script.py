"""A real HTTP server on loopback that answers with the lines of a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Line:
    """One answer; `hang` sends nothing on an open connection, `drop` closes it.

    `pieces` are sent one by one as they come, in the place of `body`. `open` keeps the connection open after them.
    """

    status: int = 200
    body: str = ""
    pieces: Iterable[str] = ()
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False
    open: bool = False


@dataclass
class HttpScript:
    """The answers of the server, and the requests that it received."""

    lines: list[Line]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


def completion(text: str | None, finish_reason: str = "stop", **message: object) -> Line:
    """A chat completion as servers send it."""
    said = {"role": "assistant", "content": text, **message}
    return Line(
        body=json.dumps(
            {
                "choices": [{"index": 0, "message": said, "finish_reason": finish_reason}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            }
        )
    )


def chunk(finish_reason: str | None = None, **delta: object) -> str:
    """One event of a completion that is streamed."""
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], "usage": None})


DONE = "data: [DONE]\n\n"
COUNTED = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def streamed(*chunks: str, last: object = COUNTED, pieces: Iterable[str] = ()) -> Line:
    """A chat completion as servers stream it: events, the last of which counts the tokens."""
    rest = [": a comment\n\n", _event(last), DONE] if last is not None else []
    return Line(headers={"content-type": "text/event-stream; charset=utf-8"}, pieces=pieces or [*chunks, *rest])


def _event(value: object) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def refused(text: str) -> Line:
    """A request refused for its form."""
    return Line(status=400, body=json.dumps({"error": {"message": text}}))


@contextmanager
def serving(*lines: Line, answer: Callable[[dict[str, Any]], Line] | None = None) -> Iterator[tuple[str, HttpScript]]:
    """Serve the script, or what `answer` makes of each request, and give the base URL."""
    script = HttpScript(list(lines))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            script.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            script.headers.append({key.lower(): value for key, value in self.headers.items()})
            line = script.lines.pop(0) if answer is None else answer(script.bodies[-1])
            if line.hang:
                script.over.wait()
            if line.hang or line.drop:
                self.close_connection = True
                return
            self.send_response(line.status)
            for key, value in line.headers.items():
                self.send_header(key, value)
            if line.pieces:
                self.close_connection = True
            else:
                self.send_header("content-length", str(len(line.body.encode())))
            self.end_headers()
            for piece in line.pieces or [line.body]:
                self.wfile.write(piece.encode())
                self.wfile.flush()
            if line.open:
                script.over.wait()

        def log_message(self, *arguments: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", script
    finally:
        script.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
