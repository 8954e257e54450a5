"""Foreign servers, based on the standard library."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent

Reply = tuple[int, object, dict[str, str]]
Route = Callable[["Request"], Reply]


class Request:
    """A received request."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.method, self.path, self.headers = handler.command, handler.path, handler.headers
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    @property
    def said(self) -> Any:
        """Its JSON."""
        return json.loads(self.body or b"{}")


@contextmanager
def serving(route: Route) -> Iterator[str]:
    """Serve for as long as the block, and give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, route)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, route: Route, *args: Any) -> None:
        self._route = route
        super().__init__(*args)

    def _reply(self) -> None:
        try:
            status, said, headers = self._route(Request(self))
        except Exception as error:  # noqa: BLE001 - as servers do
            status, said, headers = 500, {"error": str(error)}, {}
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            return

    do_GET = do_POST = do_DELETE = _reply  # noqa: N815 - as the standard library calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class WebhookServer:
    """Takes tasks by POST; a task that waits is polled, and a quick task is answered at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, _Job] = {}

    def __call__(self, request: Request) -> Reply:
        if request.method == "POST":
            order, key = request.said, request.headers["Idempotency-Key"]
            job = self._jobs[key] = _Job(self._folder, order["task"], key)
            if order["task"].split()[0] in ("wait", "gate", "step"):
                return 202, {}, {"Location": f"/jobs/{key}"}
            job.thread.join()
            return job.reply()
        job = self._jobs[request.path.rpartition("/")[2]]
        if request.method == "DELETE":
            job.stop.set()
        return job.reply()


class _Job:
    def __init__(self, folder: Path, task: str, key: str) -> None:
        self.stop = threading.Event()
        self.seen = threading.Event()
        """Set when a reply contained a step; the task waits for it, so that the client can see the step."""
        self._deeds = ForeignAgent(folder).play(task, key, self.stop.is_set)
        self._told: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            for deed in self._deeds:
                match deed:
                    case ProgressStep(text):
                        self._told["progress"] = text
                        self.seen.wait(timeout=5)
                    case Spent(tokens, answer_tokens):
                        self._told["spend"] = {"tokens": tokens, "answer_tokens": answer_tokens}
                    case Made(name, data):
                        self._told["artifacts"] = [{"name": name, "data": base64.b64encode(data).decode()}]
                    case FinalAnswer(text):
                        self._told["result"] = text
        except RuntimeError as error:
            self._told["error"] = str(error)

    def reply(self) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Say how far it is."""
        reply = 202 if self.thread.is_alive() else 200, dict(self._told), dict[str, str]()
        if "progress" in reply[1]:
            self.seen.set()
        return reply


class A2aServer:
    """Speaks A2A 1.0. Files are links to this server; the link to another server stays one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, _Job] = {}

    def __call__(self, request: Request) -> Reply:
        self._url = f"http://{request.headers['Host']}"
        if request.path == "/.well-known/agent-card.json":
            interface = {"url": f"{self._url}/rpc", "protocolVersion": "1.0", "protocolBinding": "JSONRPC"}
            return 200, {"name": "remote", "supportedInterfaces": [interface]}, {}
        if request.path.startswith("/files/"):
            made = self._jobs[request.path.rpartition("/")[2]].reply()[1]["artifacts"]
            return 200, base64.b64decode(made[0]["data"]), {}
        method, params = request.said["method"], request.said["params"]
        if method == "SendMessage":
            message = params["message"]
            task_id = message["messageId"]
            self._jobs[task_id] = _Job(self._folder, message["parts"][0]["text"], task_id)
            return 200, {"jsonrpc": "2.0", "id": 1, "result": {"task": self._task(task_id)}}, {}
        if method == "CancelTask":
            self._jobs[params["id"]].stop.set()
        return 200, {"jsonrpc": "2.0", "id": 1, "result": self._task(params["id"])}, {}

    def _task(self, task_id: str) -> dict[str, Any]:
        status, told, _ = self._jobs[task_id].reply()
        state = "WORKING" if status == 202 else "FAILED" if "error" in told else "COMPLETED"
        said = told.get("error") or (told.get("progress") if status == 202 else None)
        message = {"message": {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": said}]}} if said else {}
        parts: list[dict[str, Any]] = [{"text": told["result"]}] if told.get("result") else []
        for file in told.get("artifacts", ()):
            parts += [{"url": f"{self._url}/files/{task_id}", "filename": file["name"]}, {"url": "http://elsewhere.example/x"}]
        artifacts = [{"artifactId": "1", "parts": parts}]
        return {"id": task_id, "contextId": "1", "status": {"state": f"TASK_STATE_{state}", **message}, "artifacts": artifacts}
