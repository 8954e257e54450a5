"""Adopted A2A agents: cards and answers of the shapes that public agents have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ioa import DeclinedError, InvalidInputError, IoaError, TaskError
from ioa.adapters import ssrf
from ioa.adopt import a2a
from ioa.testing import RecordingContext
from tests.contract.adopt.servers import Reply, Request, serving

Json = dict[str, Any]
WORDS: Json = {"kind": "message", "messageId": "r1", "role": "agent", "parts": [{"kind": "text", "text": "Sun over Tarn"}]}
ASKS: Json = {**WORDS, "parts": [{"kind": "text", "text": "Celsius or Fahrenheit?"}]}
DONE: Json = {
    "kind": "task", "id": "task-1", "contextId": "c", "status": {"state": "completed"},
    "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "Sun over Tarn"}]}],
}  # fmt: skip
DONE_V1: Json = {
    "task": {
        "id": "task-1",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "Sun over Tarn"}]}],
    }
}
COMPLETED: Json = {"state": "completed", "message": WORDS}
V3 = {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


class RemoteAgent:
    """A server with a card and answers to messages, which writes every member of JSON-RPC, also a null error.

    Attributes:
        card: Makes the card from the server's origin.
        answers: The results of messages, in order; the last one repeats.
        path: The path of the card.
    """

    def __init__(self, card: Callable[[str], Json], *answers: Json, path: str = "/.well-known/agent-card.json") -> None:
        self.card = card
        self.answers = list(answers)
        self.path = path
        self.calls: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        if request.path == self.path:
            origin = f"http://{request.headers['Host']}"
            return 200, {"name": "Weather", "description": "Weather of a town", "skills": [], **self.card(origin)}, {}
        if request.method != "POST":
            return 404, {"detail": "Not Found"}, {}
        self.calls.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return 200, {"jsonrpc": "2.0", "id": "1", "error": None, **(answer if "error" in answer else {"result": answer})}, {}


async def answered(remote: RemoteAgent, ctx: RecordingContext, **options: Any) -> str:
    """Run one task with an adopted agent, and return its result."""
    with serving(remote) as url:
        agent = a2a("weather", url, description="Weather of a town", **options)
        async with agent.opened():
            answer = agent.function("Tarn", ctx)
        assert not isinstance(answer, str)
        return await answer


@pytest.mark.parametrize(
    "card",
    [
        lambda origin: {"url": f"{origin}/", **V3},
        lambda origin: {
            "url": f"{origin}/", "additionalInterfaces": None, "security": None, "securitySchemes": None, "provider": None, **V3
        },
        lambda origin: {"url": f"{origin}/"},
        lambda origin: {"url": f"http://localhost:{origin.rpartition(':')[2]}/", **V3},
        lambda _: {"url": "/rpc", **V3},
    ],
    ids=["plain", "nulls", "no-version", "localhost", "path"],
)  # fmt: skip
async def test_card_of_version_0_3_is_read(card: Callable[[str], Json], tmp_path: Path) -> None:
    """Absent values may be null or missing."""
    assert await answered(RemoteAgent(card, DONE), RecordingContext(tmp_path)) == "Sun over Tarn"


@pytest.mark.parametrize(
    "card",
    [
        lambda origin: {
            "protocolVersion": "1.0", "supportedInterfaces": [{"url": f"{origin}/", "protocolBinding": "JSONRPC", "tenant": ""}]
        },
        lambda origin: {
            "supportedInterfaces": [
                {"url": f"{origin}/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": f"{origin}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            ]
        },
    ],
    ids=["version-above", "second-interface"],
)  # fmt: skip
async def test_card_of_version_1_0_is_read(card: Callable[[str], Json], tmp_path: Path) -> None:
    """The first interface with a supported binding is used."""
    assert await answered(RemoteAgent(card, DONE_V1), RecordingContext(tmp_path)) == "Sun over Tarn"


async def test_agent_with_http_json_only_is_reached(tmp_path: Path) -> None:
    """The binding is supported, in both versions."""

    def route(request: Request) -> Reply:
        if request.method == "GET":
            url = f"http://{request.headers['Host']}"
            return 200, {"supportedInterfaces": [{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}, {}
        assert request.path == "/message:send"
        return 200, DONE_V1, {}

    with serving(route) as url:
        answer = a2a("weather", url, description="Weather").function("Tarn", RecordingContext(tmp_path))
        assert not isinstance(answer, str) and await answer == "Sun over Tarn"


@pytest.mark.parametrize(
    ("interface", "offers"),
    [
        ({"protocolBinding": "GRPC", "protocolVersion": "1.0"}, "its card names GRPC 1.0"),
        ({"protocolBinding": "JSONRPC", "protocolVersion": "0.1"}, "its card names JSONRPC 0.1"),
    ],
)
async def test_agent_without_a_supported_interface_is_rejected_at_the_start(interface: Json, offers: str) -> None:
    """It does not join and then fail every task."""
    remote = RemoteAgent(lambda origin: {"supportedInterfaces": [{"url": f"{origin}/", **interface}]})
    with serving(remote) as url, pytest.raises(InvalidInputError, match=r"does not offer A2A 1\.0 or 0\.3") as raised:
        async with a2a("weather", url, description="Weather").opened():
            pass
    assert offers in raised.value.message


@pytest.mark.parametrize(
    "answer",
    [
        {**DONE, "artifacts": None, "history": None, "status": {**COMPLETED, "timestamp": None}},
        {**DONE, "artifacts": [], "status": COMPLETED},
        {**DONE, "artifacts": [], "history": [WORDS]},
        WORDS,
    ],
    ids=["nulls", "status-only", "history-only", "message"],
)
async def test_answer_is_read(answer: Json, tmp_path: Path) -> None:
    """The text is in the artifacts, otherwise in the status, otherwise in the history."""
    remote = RemoteAgent(lambda origin: {"url": origin, **V3}, answer)
    assert await answered(remote, RecordingContext(tmp_path)) == "Sun over Tarn"


async def test_question_of_a_remote_agent_is_asked(tmp_path: Path) -> None:
    """The answer continues the same task."""
    asks = {**DONE, "artifacts": None, "status": {"state": "input-required", "message": ASKS}}
    remote = RemoteAgent(lambda origin: {"url": origin, **V3}, asks, DONE)
    ctx = RecordingContext(tmp_path, answers={"Celsius or Fahrenheit?": "Celsius"})
    assert await answered(remote, ctx) == "Sun over Tarn"
    message = remote.calls[1].said["params"]["message"]
    assert (message["taskId"], message["contextId"], message["parts"][0]["text"]) == ("task-1", "c", "Celsius")
    assert [one.text for one in ctx.inquiries] == ["Celsius or Fahrenheit?"]


@pytest.mark.parametrize(
    ("state", "error", "why"),
    [
        ("rejected", DeclinedError, "has rejected the task: Celsius or Fahrenheit?"),
        ("failed", TaskError, "failed: failed, Celsius or Fahrenheit?"),
        ("auth-required", TaskError, "failed: auth-required, Celsius or Fahrenheit?"),
        ("input-required", TaskError, "failed: input-required, Celsius or Fahrenheit?"),
    ],
)
async def test_state_that_is_not_completed_fails_the_task(state: str, error: type, why: str, tmp_path: Path) -> None:
    """A rejected task is declined. A question that is repeated after its answer fails the task."""
    remote = RemoteAgent(lambda origin: {"url": origin, **V3}, {**DONE, "status": {"state": state, "message": ASKS}})
    with pytest.raises(IoaError) as raised:
        await answered(remote, RecordingContext(tmp_path))
    assert (type(raised.value), why in str(raised.value)) == (error, True)


async def test_file_without_a_plain_name_is_not_fetched(tmp_path: Path) -> None:
    """It fails the task before a download."""
    fetched: list[str] = []

    def route(request: Request) -> Reply:
        origin = f"http://{request.headers['Host']}/"
        if "/file/" in request.path:
            fetched.append(request.path)
            return 200, b"x", {}
        if request.method == "GET":
            return 200, {"url": origin, **V3}, {}
        parts = [{"kind": "file", "file": {"name": "../1", "uri": f"{origin}file/1"}}]
        return 200, {"jsonrpc": "2.0", "id": "1", "result": {**DONE, "artifacts": [{"artifactId": "a", "parts": parts}]}}, {}

    with serving(route) as url, pytest.raises(InvalidInputError, match="is no plain file name"):
        answer = a2a("weather", url, description="Weather").function("Tarn", RecordingContext(tmp_path))
        assert not isinstance(answer, str)
        await answer
    assert fetched == []


def _card_elsewhere(url: str, _: str) -> Json:
    return {"url": url, **V3}


async def test_headers_are_sent_to_the_adopted_server_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card may name another server, which must have a public address, and which receives no headers."""
    headers = {"Authorization": "Bearer secret"}
    remote = RemoteAgent(lambda origin: {"url": origin, **V3}, DONE)
    await answered(remote, RecordingContext(tmp_path), headers=headers)
    assert [call.headers["Authorization"] for call in remote.calls] == ["Bearer secret"]
    monkeypatch.setattr(ssrf, "addresses_of", lambda host, port: ["127.0.0.1"])
    with serving(other := RemoteAgent(lambda _: {}, DONE)) as elsewhere:
        port = elsewhere.rpartition(":")[2]
        for host in ("other.example", "127.0.0.2"):
            remote = RemoteAgent(partial(_card_elsewhere, f"http://{host}:{port}/"), DONE)
            with pytest.raises(InvalidInputError, match="private network"):
                await answered(remote, RecordingContext(tmp_path), headers=headers)
        assert other.calls == []
        monkeypatch.setattr(ssrf, "lead_outside", lambda addresses: True)
        remote = RemoteAgent(partial(_card_elsewhere, f"http://other.example:{port}/"), DONE)
        assert await answered(remote, RecordingContext(tmp_path), headers=headers) == "Sun over Tarn"
    assert [call.headers["Authorization"] for call in other.calls] == [None]
