"""Every decoder of input from strangers, with a valid example of its input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgpack

from ioa.adapters.nats.auth.nats_credentials import claims_of
from ioa.adapters.nats.wire.message_parser import read_headers
from ioa.adapters.openai.chat_request import ChatRequest
from ioa.adapters.openai.completion import CompletionReader, UnansweredError
from ioa.agent.model.answers import Speech, parse_answer
from ioa.agent.rules.list_plan import parse_list
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.foreign_text import continued, escaped_json, shown, shown_in_line
from ioa.group.requests import LaunchGroup
from ioa.json_text import find_object
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool
from ioa.protocol import subjects
from ioa.protocol.agents.search import Search
from ioa.protocol.codec import receive
from ioa.protocol.goal_order import parse_goal
from ioa.protocol.ids import LOCAL, GoalId, GoalName, check_token
from ioa.protocol.messages import Message
from ioa.protocol.operation.api_keys import parse_key
from ioa.protocol.operation.trace import trace_of_goal
from ioa.protocol.registry import Register
from ioa.protocol.setup.file_requests import PutFile
from ioa.protocol.teams.stored_teams import PutTeam
from ioa.protocol.teams.team_file import read_json, read_toml
from ioa.telemetry.logs import hide_secrets

Form = Literal["msgpack", "JSON", "text", "bytes"]
_GOAL = GoalId("g1")
_EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "decoded.json").read_text(encoding="utf-8"))
_REQUESTS = (Message, Register, LaunchGroup, Search, PutFile, PutTeam)


@dataclass(frozen=True)
class Decoder:
    """A function that reads bytes of a stranger.

    Attributes:
        form: How the input is written.
        example: A valid input, as a document if `form` is msgpack or JSON.
        errors: The errors that reject an input.
    """

    name: str
    read: Callable[[bytes], object]
    form: Form
    example: Any
    errors: tuple[type[Exception], ...] = (InvalidInputError, PayloadTooLargeError)

    def write(self, document: object) -> bytes | None:
        """Write a document as an input, or return None if the form cannot express it."""
        try:
            if self.form == "JSON":
                return json.dumps(document).encode()
            packed: bytes = msgpack.packb(document)
        except (TypeError, ValueError, OverflowError):
            return None
        return packed


def _requests() -> list[Decoder]:
    kinds = {kind.__name__: kind for kind in _REQUESTS}
    found = [(name, kinds.get(name.split()[0]), example) for name, example in _EXAMPLES.items()]
    return [Decoder(name, partial(receive, kind), "msgpack", example) for name, kind, example in found if kind is not None]


def _text(name: str, read: Callable[[str], object], example: str, error: type[Exception] = InvalidInputError) -> Decoder:
    return Decoder(name, lambda data: read(data.decode("utf-8", "replace")), "text", example, (error,))


def _read_subject(text: str) -> None:
    parsers = (
        subjects.parse_say,
        subjects.parse_agent,
        subjects.parse_owner,
        subjects.parse_comm,
        subjects.parse_goal_subject,
    )
    for parse in parsers:
        try:
            parse(text)
        except ValueError:
            continue
    subjects.kind_of(text)


def _read_completion(data: bytes) -> object:
    async def pieces() -> AsyncIterator[bytes]:
        yield data

    request = ChatRequest((ChatMessage("user", "x"),), None, AnswerLimits(10, timedelta(seconds=1)), (Tool("f", "", {}),))
    return asyncio.run(CompletionReader(request).read(pieces()))


DECODERS = (
    *_requests(),
    Decoder("goals", parse_goal, "JSON", _EXAMPLES["goal"]),
    Decoder("team files as JSON", lambda data: read_json(data.decode("utf-8", "replace")), "JSON", _EXAMPLES["team"]),
    _text("team files as TOML", read_toml, 'team = "t"\n[roles]\na = "ada"\n[[nodes]]\nname = "x"\nroles = ["a"]\n'),
    Decoder("model completions", _read_completion, "JSON", _EXAMPLES["completion"], errors=(UnansweredError,)),
    Decoder(
        "streamed model completions",
        lambda data: _read_completion(b"data: " + data + b"\ndata: [DONE]"),
        "JSON",
        _EXAMPLES["completion"],
        (UnansweredError,),
    ),
    Decoder("model answers", lambda data: parse_answer(data.decode("utf-8", "replace"), Speech), "JSON", _EXAMPLES["answer"]),
    _text("objects in model answers", find_object, 'Well: {"a": 1}'),
    Decoder("NATS headers", lambda data: read_headers(b"NATS/1.0\r\n" + data), "bytes", b"a: b\r\n\r\n"),
    _text("goals for rules", parse_list, "1. Count\n2. Add #1"),
    _text("trace headers", lambda text: trace_of_goal(GoalName(LOCAL, _GOAL), text), f"00-{'a' * 32}-{'b' * 16}-01"),
    _text("API keys", parse_key, "ioa_a_b"),
    _text("tokens", claims_of, "eyJhbGciOiJub25lIn0.e30.", ValueError),
    _text("subjects", _read_subject, "ioa.v1.agent.ada.ada.say.c1"),
    _text("ids", check_token, "ada", ValueError),
    _text("terminal output", lambda text: (continued(shown(text)), shown_in_line(text), escaped_json(text)), "a\x1b[0m"),
    _text("log lines", lambda text: hide_secrets(None, "", {"error": text, "content": text[:20_000]}), "token=a"),
)
