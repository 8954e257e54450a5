"""Every decoder of input from strangers, with a valid example of its input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import msgpack
from pydantic import BaseModel, ValidationError

from ioa.adapters.nats.auth.credentials import claims_of
from ioa.adapters.nats.wire.message_parser import read_headers
from ioa.adapters.openai.completion import CompletionReader, UnansweredError
from ioa.adapters.openai.request_body import ChatRequest
from ioa.agent.model.answers import Speech, parse_answer
from ioa.agent.rules.list_plan import parse_list
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.foreign_text import continued, defused, escaped_json, in_one_line, shown, shown_in_line
from ioa.group.requests import AnswerQuestion, CancelGoal, LaunchGroup
from ioa.json_text import find_object
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import kind_of_need
from ioa.protocol.agents.search import Search
from ioa.protocol.codec import receive
from ioa.protocol.goal_order import GoalOrder, find_goal_id, parse_goal
from ioa.protocol.goals import check_file_name, plain_file_name, read_labels
from ioa.protocol.ids import LOCAL, GoalId, GoalName, check_token
from ioa.protocol.messages import Discussion, Message
from ioa.protocol.model import Model
from ioa.protocol.operation.api_keys import parse_key
from ioa.protocol.operation.trace import trace_of_goal
from ioa.protocol.registry import Register, Renew
from ioa.protocol.setup.files import PutFile
from ioa.protocol.team import read_json, read_toml
from ioa.protocol.teams.stored_teams import PutTeam, TeamReference
from ioa.protocol.texts import shortened
from ioa.repetition import sketches_of
from ioa.telemetry.logs import hide_secrets
from ioa_discovery.terms import document_terms, query_terms
from ioa_gateway.api.agui import RunInput
from ioa_gateway.api.chat import ChatOrder
from ioa_gateway.api.goals import CancelOrder, RerunOrder
from ioa_gateway.api.questions import AnswerOrder
from ioa_gateway.api.seats import SayOrder
from ioa_gateway.api.session import SessionOrder
from ioa_gateway.api.webhooks import WebhookOrder
from ioa_gateway.request_body import read_object

Form = Literal["msgpack", "JSON", "text", "bytes"]
_GOAL = GoalId("g1")
TEAM = {
    "team": "panel",
    "goal": "Decide.",
    "roles": {"chair": {"agent": "ada", "prompt": "Lead."}, "peer": {"agents": ["bob", "eve"]}},
    "nodes": [
        {
            "name": "talk",
            "roles": ["chair", "peer"],
            "max": 6,
            "form": {"sum": {"kind": "number", "lowest": -5, "highest": 5}, "so": "this|that?"},
            "guards": [{"longest": 500}, {"without": ["apple"]}],
            "exits": [{"to": "vote", "when": {"turns": 2}}, {"to": "end", "when": {"rounds": 3}}],
        },
        {"name": "vote", "roles": ["peer"], "max": 4, "then": ["talk"]},
    ],
}
_ORDER = {
    "goal": "Count.",
    "goal_id": "g",
    "agent": "ada",
    "max_turns": 5,
    "max_cost": 1.5,
    "timeout": 60,
    "inputs": [{"name": "a.csv", "text": "x"}],
    "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    "labels": {"a": "b"},
}
_COMPLETION = {
    "choices": [{"message": {"content": "x", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
}
_SPEECH = {"thought": "", "decision": {"type": "DISCUSSION", "content": "x", "next_speaker": "bob"}}
_A2A = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "message/send",
    "params": {"message": {"messageId": "a", "role": "user", "parts": [{"kind": "text", "text": "x"}]}},
}
_BODIES: tuple[tuple[type[BaseModel], Any], ...] = (
    (GoalOrder, _ORDER),
    (CancelOrder, {"why": "x"}),
    (RerunOrder, {"at": 3, "message": "x"}),
    (Search, {"needs": [{"text": "a sum"}], "limit": 3}),
    (WebhookOrder, {"url": "https://example.org/", "goal_id": "g1"}),
    (AnswerOrder, {"turn": 1, "answer": "x"}),
    (SayOrder, {"seat": "eve", "turn": 1, "payload": {"text": "x"}}),
    (ChatOrder, {"model": "ioa", "messages": [{"role": "user", "content": [{"type": "text", "text": "Count."}]}]}),
    (
        RunInput,
        {
            "threadId": "t",
            "runId": "r",
            "state": {},
            "messages": [{"id": "1", "role": "user", "content": "Count."}],
            "tools": [],
            "context": [{"description": "x", "value": "y"}],
            "forwardedProps": {},
        },
    ),
    (SessionOrder, {"key": "ioa_a_b"}),
)


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


_FILE = {"name": "a", "size_bytes": 1, "sha256": "0" * 64}
_HEADER = {
    "message_id": "m",
    "comm_id": "c",
    "sender": "ada",
    "state": "discussing",
    "turn": 1,
    "after": 0,
    "sent_at": "2026-01-01T00:00:00Z",
}
_TASKS = [
    {"task_id": "t1-1", "assignee": "bob", "task_desc": "Add."},
    {"task_id": "t1-2", "assignee": "eve", "task_desc": "Add.", "depends_on": ["t1-1"]},
]
_CARD = {"agent_id": "ada", "name": "ada", "description": "Adds.", "examples": ["1 + 1"], "tags": ["sum"], "pool": "ada"}
_REQUESTS: tuple[tuple[type[Model], Any], ...] = (
    (Message, {"header": _HEADER, "payload": {"type": "DISCUSSION", "content": "Well?", "next_speaker": "bob"}}),
    (Message, {"header": _HEADER, "payload": {"type": "SYNC_TASK_ASSIGNMENT", "content": "Go.", "tasks": _TASKS}}),
    (Register, {"card": _CARD, "session": {"session": "s", "host": "box", "pid": 7, "since": "2026-01-01T00:00:00Z"}}),
    (Renew, {"agent_id": "ada", "pool": "ada", "session": "s", "load": {"tasks": 1, "groups": 2, "slots": 3}}),
    (LaunchGroup, {"owner": "ada", "members": ["bob"], "goal_id": "g1", "user": "local", "ticket": "0" * 32}),
    (Search, {"needs": [{"text": "count cars"}], "filters": {"online_only": True}, "purpose": "g1", "limit": 3}),
    (PutFile, {"agent_id": "ada", "comm_id": "c", "place": "a", "file": _FILE, "data": b"x"}),
    (CancelGoal, {"goal_id": "g1", "why": "x"}),
    (AnswerQuestion, {"comm_id": "c", "turn": 1, "answer": "x"}),
    (PutTeam, {"team": TEAM}),
)


def _requests() -> list[Decoder]:
    return [
        Decoder(f"{kind.__name__} {number}", partial(receive, kind), "msgpack", example)
        for number, (kind, example) in enumerate(_REQUESTS)
    ]


def _bodies() -> list[Decoder]:
    return [_body(kind, example) for kind, example in _BODIES]


def _body(kind: type[BaseModel], example: Any) -> Decoder:
    errors = (InvalidInputError, PayloadTooLargeError, ValidationError)
    return Decoder(f"body {kind.__name__}", lambda data: kind.model_validate(read_object(data)), "JSON", example, errors)


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


_NAMES = [f"{'my ' * number}a.csv" for number in range(20)]

DECODERS = (
    *_requests(),
    *_bodies(),
    Decoder("goals", parse_goal, "JSON", _ORDER),
    Decoder("ids of rejected goals", find_goal_id, "JSON", _ORDER),
    Decoder("objects of HTTP bodies", read_object, "JSON", _ORDER),
    Decoder("team files as JSON", lambda data: read_json(data.decode("utf-8", "replace")), "JSON", TEAM),
    _text("team files as TOML", read_toml, 'team = "t"\n[roles]\na = "ada"\n[[nodes]]\nname = "x"\nroles = ["a"]\n'),
    Decoder("model completions", _read_completion, "JSON", _COMPLETION, errors=(UnansweredError,)),
    Decoder(
        "streamed model completions",
        lambda data: _read_completion(b"data: " + data + b"\ndata: [DONE]"),
        "JSON",
        _COMPLETION,
        (UnansweredError,),
    ),
    Decoder("model answers", lambda data: parse_answer(data.decode("utf-8", "replace"), Speech), "JSON", _SPEECH),
    _text("objects in model answers", find_object, 'Well: {"a": 1}'),
    Decoder("NATS headers", lambda data: read_headers(b"NATS/1.0\r\n" + data), "bytes", b"a: b\r\n\r\n"),
    _text("goals for rules", parse_list, "1. Count\n2. Add #1"),
    _text("names of files", lambda text: (check_file_name(text), plain_file_name(text)), "a.csv", error=ValueError),
    _text("labels", lambda text: read_labels(text.split(",")), "a=b,c=d"),
    _text("trace headers", lambda text: trace_of_goal(GoalName(LOCAL, _GOAL), text), f"00-{'a' * 32}-{'b' * 16}-01"),
    _text("API keys", parse_key, "ioa_a_b"),
    _text("tokens", claims_of, "eyJhbGciOiJub25lIn0.e30.", ValueError),
    _text("subjects", _read_subject, "ioa.v1.agent.ada.ada.say.c1"),
    _text("ids", check_token, "ada", ValueError),
    _text("team references", TeamReference.parse, "debate@2"),
    _text("needs", lambda text: (query_terms(text), document_terms(text), kind_of_need(text)), "count cars"),
    _text("repeated contents", lambda text: sketches_of(Discussion(content=text)), "Well."),
    _text("prompts", lambda text: in_one_line(defused(shortened(text, 60_000))), "<goal>"),
    _text("terminal output", lambda text: (continued(shown(text)), shown_in_line(text), escaped_json(text)), "a\x1b[0m"),
    _text("log lines", lambda text: hide_secrets(None, "", {"error": text, "content": text[:20_000]}), "token=a"),
)
