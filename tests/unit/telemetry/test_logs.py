"""Log lines: ids, content only if enabled, and no secrets."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.protocol.operation.trace import trace_of_goal
from ioa.telemetry import log_context
from ioa.telemetry.logs import MAX_CHARS, configure_logs, masked

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave logging as it was found."""
    handlers, before = list(logging.root.handlers), structlog.get_config()
    yield
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    log_context.bind({})


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Return the new lines as objects."""
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


class Address:
    """Something whose looks show a secret."""

    def __repr__(self) -> str:
        return "at nats://u:hunter22@h"


def failing(text: str) -> None:
    """Raise an error with a cause; both messages contain a text."""
    try:
        raise KeyError(text)
    except KeyError as error:
        raise ValueError(f"no good: {text}") from error


def test_closed_stream_raises_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process continues."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logs("info", "console")
    structlog.get_logger().info("before")
    heard = stream.getvalue()
    stream.close()
    structlog.get_logger().info("after")
    assert "before" in heard


async def test_lines_contain_the_ids_of_their_task(lines: Lines) -> None:
    """Also the lines of child tasks, and not of other tasks."""
    configure_logs("info", "json", service="ioa-router")
    log = structlog.get_logger()

    async def work(comm_id: str) -> None:
        traceparent = trace_of_goal(GoalName(LOCAL, GoalId(comm_id)), "")
        log_context.bind({"comm_id": comm_id, "goal_id": "g", "agent_id": "", "traceparent": traceparent})

        async def task() -> None:
            log_context.bind_also(task_id="t1")
            log.info("inner", goal_id="its own")

        await asyncio.create_task(task())
        log.info("outer")

    await asyncio.create_task(work("a"))
    log.info("beside")
    shown = lines()
    ids = [tuple(line.get(name) for name in ("event", "comm_id", "goal_id", "task_id", "agent_id")) for line in shown]
    assert sorted(ids, key=str) == [
        ("beside", None, None, None, None),
        ("inner", "a", "its own", "t1", None),
        ("outer", "a", "g", None, None),
    ]
    traces = {line["trace_id"] for line in shown if line.get("comm_id") == "a"}
    assert [len(trace_id) for trace_id in traces] == [32]
    assert {(line["service"], line["level"]) for line in shown} == {("ioa-router", "info")}


def test_content_is_logged_only_if_enabled(lines: Lines) -> None:
    """Texts of users, and messages of exceptions, are left out by default; types and places of exceptions are not."""
    shown, text = [], "my diary"
    for content in (False, True):
        configure_logs("info", "json", content=content)
        log = structlog.get_logger()
        log.info("said", content=text)
        try:
            failing(text)
        except ValueError:
            log.exception("task_crashed")
        shown.append(json.dumps(lines()))
    assert [text in line for line in shown] == [False, True]
    for line in shown:
        assert all(part in line for part in ("KeyError", "ValueError", "failing", "task_crashed", "Traceback (most recent"))


def test_the_parts_of_a_group_of_exceptions_are_shown(lines: Lines) -> None:
    """Each with its type and place, and without its message."""
    configure_logs("info", "json")
    error = ExceptionGroup("many of my diary", [ValueError("my diary"), OSError("my diary")])
    structlog.get_logger().error("failed", exc_info=error)
    (line,) = lines()
    assert "my diary" not in line["exception"]
    assert [part in line["exception"] for part in ("ExceptionGroup", "1 of 2:", "ValueError", "2 of 2:", "OSError")] == [True] * 5


def test_a_long_text_is_cut(lines: Lines) -> None:
    """Also in lists. No part of a secret is shown."""
    configure_logs("info", "json")
    seed = "SUAGRTQNBVPQKBEXHS6HEM2EEGCZK5CJ4H4XDZXR5UVLZYUMTTFLTBVCEY"
    structlog.get_logger().info("refused", error="x" * 1_000_000, parts=[f"{'y' * (MAX_CHARS - 20)} {seed}", "z"])
    (line,) = lines()
    assert (line["error"], line["parts"][1]) == ("x" * MAX_CHARS + "… (1,000,000 characters)", "z")
    assert "SUAGRTQ" not in line["parts"][0]


SECRETS = {
    "nats://user:hunter22@nats:4222": "nats://user:[hidden]@nats:4222",
    "tls://s3cr3tt0ken@nats:4222": "tls://[hidden]@nats:4222",
    "Authorization: Bearer abcdefgh12345678": "Authorization: Bearer [hidden]",
    "got api_key=abcd1234efgh from": "got api_key=[hidden] from",
    '{"password": "hunter22"}': '{"password": "[hidden]"}',
    "seed SUAGRTQNBVPQKBEXHS6HEM2EEGCZK5CJ4H4XDZXR5UVLZYUMTTFLTBVCEY end": "seed [hidden] end",
    "one letter is missing: suagrtqnbvpqkbexhs6hem2eegczk5cj4h4xdzxr5uvlzyumttfltbvce": "one letter is missing: [hidden]",
    "key sk-proj-abcdefghijklmnop1234": "key [hidden]",
    "jwt eyJ0eXAiOiJKV1QiLCJhbGciOiJl.eyJqdGkiOiJBQkNERUZH.c2lnbmF0dXJl": "jwt [hidden]",
}


@pytest.mark.parametrize("text", SECRETS)
def test_text_with_a_secret_is_masked(text: str) -> None:
    """The surrounding text stays."""
    assert masked(text) == SECRETS[text]


@pytest.mark.parametrize(
    "text", ["nats://127.0.0.1:4222", "prompt_tokens=12345", "a task for user@example.org", "S" * 58, "the secret of success"]
)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    """Addresses, counts and prose are left alone."""
    assert masked(text) == text


def test_secrets_are_hidden_wherever_they_stand_in_a_line(lines: Lines) -> None:
    """By the name of their field, in nested values, and in exceptions that are shown."""
    configure_logs("info", "json", content=True)
    log = structlog.get_logger()
    log.info("connecting", api_key="abc", nested={"password": "abc", "url": ["nats://u:hunter22@h"]}, tokens_in=3, at=Address())
    try:
        failing("nats://u:hunter22@h")
    except ValueError:
        log.exception("failed")
    first, second = lines()
    assert first["at"] == "at nats://u:[hidden]@h"
    assert (first["api_key"], first["tokens_in"]) == ("[hidden]", 3)
    assert first["nested"] == {"password": "[hidden]", "url": ["nats://u:[hidden]@h"]}
    assert "hunter22" not in second["exception"]


def test_libraries_log_into_the_same_stream(lines: Lines) -> None:
    """From warnings on, as JSON, unless the process has chosen another place for them."""
    logging.root.handlers[:] = []
    configure_logs("info", "json", service="ioa-agent")
    logging.getLogger("some.library").warning("%s is old", "this")
    logging.getLogger("some.library").info("not shown")
    (line,) = lines()
    assert {name: line[name] for name in ("event", "logger", "message", "level", "service")} == {
        "event": "library_logged",
        "logger": "some.library",
        "message": "this is old",
        "level": "warning",
        "service": "ioa-agent",
    }


def test_console_lines_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    """On a console a line is text, with its ids."""
    configure_logs("info", "console")
    log_context.bind({"comm_id": "room"})
    structlog.get_logger().info("goal_ended", reason="concluded")
    text = capsys.readouterr().err
    assert all(part in text for part in ("goal_ended", "reason", "concluded", "comm_id", "room")) and "{" not in text
