"""What runs over texts and bytes that outsiders choose: the inventory of all that the sweep reads by.

Requests to services are found where their endpoints are made, and bodies by HTTP in the table of routes, so that nobody has to add
one here. What else reads a text of an outsider stands in `TEXTS` or `BYTES`, with as much as is let in to it.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection

from ioa.adapters.nats.direct_gets import messages_asked
from ioa.adapters.nats.headers import header_bytes, read_headers
from ioa.adapters.nats.overheard import messages_pulled
from ioa.adapters.nats.tokens import claims_of
from ioa.adapters.nats.traces import begins_like_one, traced
from ioa.agent.file_names import names_in
from ioa.agent.html_text import text_of_html
from ioa.agent.model.context import unlike
from ioa.agent.model.prompts import cut
from ioa.agent.rules.listed_parts import listed_in
from ioa.agent.rules.merging import _first_sentence
from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS, split_goal
from ioa.agent.rules.text.references import runs_code
from ioa.agent.rules.titles import title_of
from ioa.client.questions import parse_item
from ioa.client.seat import item_of
from ioa.errors import InvalidInputError
from ioa.fences import defused, in_one_line
from ioa.files import _declared_in
from ioa.foreign_text import continued, escaped_json, shown, shown_in_line
from ioa.group.forms import read_value
from ioa.group.policy.conditions import said
from ioa.json_text import find_object
from ioa.networks import network_of
from ioa.ports.agent_store import words_of
from ioa.protocol import subjects
from ioa.protocol.api_keys import parse_key
from ioa.protocol.audit import in_a_line, named_in
from ioa.protocol.codec import MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, MAX_TEXT_CHARS, count_elements, receive, shortened
from ioa.protocol.goal_order import MAX_GOAL_BYTES, find_goal_id, parse_goal
from ioa.protocol.goals import MAX_GOAL_CHARS, check_file_name, plain_file_name
from ioa.protocol.ids import LOCAL, GoalId, GoalName, check_token
from ioa.protocol.labels import read_labels
from ioa.protocol.messages import MAX_CONTENT_CHARS, Discussion
from ioa.protocol.model import Model
from ioa.protocol.named_teams import TeamReference
from ioa.protocol.outcomes import kind_of_need
from ioa.protocol.policy import Condition, Exit, Guard, Node
from ioa.protocol.policy_check import MOST_GUARDED_WORDS
from ioa.protocol.search import MAX_NEED_CHARS, NEEDS_FIELDS
from ioa.protocol.trace import trace_of_goal
from ioa.repetition import sketches_of
from ioa.telemetry.logs import hide_secrets
from ioa_discovery import answering
from ioa_discovery.answering import searches_asked
from ioa_discovery.search.terms import document_terms, query_terms
from ioa_gateway.a2a.attached import Attached
from ioa_gateway.a2a.old_params import check_request
from ioa_gateway.api_table import TABLE
from ioa_gateway.bodies import check_body
from ioa_gateway.calls import MAX_BODY_BYTES, ApiRow, Nothing, read_object
from ioa_gateway.limits import CallerLimits
from ioa_gateway.outward.posting import check_url
from ioa_gateway.routes.goals import sequence_in
from ioa_gateway.sessions import session_in
from ioa_gateway.words import text_of
from ioa_router import router

_MAKERS = ("answer", "answer_as", "answer_user", "answer_admin", "answer_member", "receive", "receive_apart")
"""What is given the model of a request."""
_SERVICES = ("ioa_registry.__main__", "ioa_groups.__main__", "ioa_authcallout.__main__")
_LONGEST_SUBJECT, _LONGEST_HEAD = 4_000, 65_536
_HTML_CHARS = 2_000_000


class Reader(NamedTuple):
    """Something that reads what an outsider chose, and how much of it is let in: characters, or bytes."""

    name: str
    read: Callable[[Any], object]
    most: int


def _with_guards(text: str) -> object:
    words = tuple("a" * (100 + number) + "b" for number in range(MOST_GUARDED_WORDS))
    return Guard(kind="without", words=words).objection(text, ("a" * 100,))


def _awaiting(*forms: str) -> Node:
    exits = [Exit(to="end", when=Condition(says=form)) for form in forms]
    return Node(name="talk", roles=("a",), exits=tuple(exits))


_WORDS = _awaiting(*(f"*{'a' * (130 + number)}b*{'ab' * 10}*" for number in range(32)))
_WILD = _awaiting(*(f"*{'a?' * 90}{number}*" for number in range(2)))
_GOAL = GoalName(None, GoalId("g1"))
_NAMES = [*(f"{'my ' * number}a.csv" for number in range(20)), *(f"{'a' * 200}{number:03}" for number in range(50))]


def _told_by_agui(text: str) -> str:
    tasks = [{"assignee": "ada", "task_desc": text[: len(text) // 64 + number]} for number in range(32)]
    return text_of({"sender": "bob", "body": {"content": text[: len(text) // 2], "tasks": tasks}})


def _with_cookies(text: str) -> HTTPConnection:
    headers = [(b"cookie", text.encode("latin-1", "replace"))]
    return HTTPConnection({"type": "http", "path": f"/s/{'0' * 32}/v1/goals", "headers": headers})


TEXTS = (
    Reader("what is said again", lambda text: sketches_of(Discussion(content=text)), MAX_CONTENT_CHARS),
    Reader("words that exits wait for", lambda text: said(_WORDS, (), (), text), MAX_CONTENT_CHARS),
    Reader("forms that exits wait for", lambda text: said(_WILD, (), (), text), MAX_CONTENT_CHARS),
    Reader("words that guards refuse", _with_guards, MAX_CONTENT_CHARS),
    Reader("names of files", lambda text: names_in(text, _NAMES), MAX_CONTENT_CHARS),
    Reader("what a task is about", kind_of_need, MAX_CONTENT_CHARS),
    Reader("words of a need", query_terms, MAX_NEED_CHARS * 3),
    Reader("words of a card", document_terms, 16_000),
    Reader("words to recall by", words_of, MAX_CONTENT_CHARS),
    Reader("examples of a card", lambda text: unlike([text[at : at + 300] for at in range(0, len(text), 300)]), 15_000),
    Reader("prompts", lambda text: in_one_line(defused(cut(text, 60_000))), MAX_TEXT_CHARS),
    Reader("answers of models", find_object, 2_000_000),
    Reader("pages of HTML", text_of_html, _HTML_CHARS),
    Reader("lines on a terminal", lambda text: continued(shown(text)), MAX_TEXT_CHARS),
    Reader("messages by AG-UI", _told_by_agui, MAX_MESSAGE_BYTES),
    Reader("goals that rules read", lambda text: (split_goal(text, _NAMES), listed_in(text)), MAX_READ_CHARS),
    Reader("tasks that rules read", lambda text: (title_of(text), runs_code(text), _first_sentence(text)), MAX_CONTENT_CHARS),
    Reader("names on a terminal", shown_in_line, MAX_TEXT_CHARS),
    Reader("JSON on a terminal", escaped_json, MAX_TEXT_CHARS),
    Reader("lines of logs", lambda text: hide_secrets(None, "", {"error": text, "content": text[:20_000]}), MAX_TEXT_CHARS),
    Reader("lines of the audit log", in_a_line, MAX_TEXT_CHARS),
    Reader("texts that are cut", lambda text: shortened(text, 4_000), MAX_TEXT_CHARS),
    Reader("goals as text", lambda text: parse_goal(text.encode("utf-8", "replace")), MAX_GOAL_CHARS),
    Reader("labels", lambda text: read_labels(text.split(",")), 300),
    Reader("ids", check_token, _LONGEST_SUBJECT),
    Reader("names of teams", TeamReference.parse, _LONGEST_SUBJECT),
    Reader("names of files to be stored", lambda text: (check_file_name(text), plain_file_name(text)), 1_000_000),
    Reader("subjects", lambda text: _each(_OF_SUBJECTS, text), _LONGEST_HEAD // 2),
    Reader("items of questions", lambda text: _each((parse_item, item_of), text), 8_000),
    Reader("fields of forms", lambda text: [read_value(kind, text) for kind in ("number", "yes_no")], 20_000),
    Reader("trace headers", lambda text: trace_of_goal(_GOAL, text), _LONGEST_HEAD),
    Reader("cookies", lambda text: session_in(_with_cookies(text)), _LONGEST_HEAD),
    Reader("keys", parse_key, _LONGEST_HEAD),
    Reader("tokens", claims_of, _LONGEST_HEAD),
    Reader("addresses", network_of, _LONGEST_HEAD),
    Reader("URLs", lambda text: _each((check_url,), text, f"http://{text}/"), 20_000),
    Reader("numbers in paths", sequence_in, 8_000),
)
"""What reads texts."""


def _each(readers: Sequence[Callable[[str], object]], *texts: str) -> None:
    """Have each read each: what one refuses others may read."""
    for read, text in product(readers, texts):
        with suppress(InvalidInputError):
            read(text)


_OF_SUBJECTS: tuple[Callable[[str], object], ...] = (
    subjects.parse_say,
    subjects.parse_caller,
    subjects.parse_member,
    subjects.parse_comm,
    subjects.parse_goal_subject,
    subjects.kind_of,
    subjects.caller_of,
)


def _taken_out(body: bytes) -> None:
    check_body(Attached(bytes).take_out(body))


BYTES = (
    Reader("headers of messages", lambda block: header_bytes(read_headers(b"NATS/1.0\r\n" + block)), MAX_PAYLOAD_BYTES),
    Reader("pulls", messages_pulled, 4_096),
    Reader("what a request counts as a search", searches_asked, MAX_PAYLOAD_BYTES),
    Reader("what a request counts as a read", messages_asked, MAX_PAYLOAD_BYTES),
    Reader("elements of a request", lambda data: count_elements(data, NEEDS_FIELDS, 32), MAX_PAYLOAD_BYTES),
    Reader("whom a request is about", named_in, MAX_PAYLOAD_BYTES),
    Reader("traces", lambda data: (traced(data, None), begins_like_one(data, None)), MAX_PAYLOAD_BYTES),
    Reader("packed traces", lambda data: begins_like_one(data, {"Content-Encoding": "snappy"}), MAX_PAYLOAD_BYTES),
    Reader("goals", parse_goal, MAX_GOAL_BYTES),
    Reader("goals as JSON", lambda data: parse_goal(b'{"goal":"x","inputs":[' + data), MAX_GOAL_BYTES - 100),
    Reader("ids of goals that are refused", find_goal_id, MAX_GOAL_BYTES),
    Reader("bodies", read_object, MAX_BODY_BYTES),
    Reader("bodies of JSON", lambda data: read_object(b'{"a":' + data + b"}"), MAX_BODY_BYTES),
    Reader("bodies with files", _taken_out, 20_000_000),
    Reader("encodings of pages", lambda data: _declared_in(data + b"x" * 19 * len(data)), MAX_PAYLOAD_BYTES),
    Reader("bodies of A2A", check_request, MAX_PAYLOAD_BYTES),
)
"""What reads bytes, which may be texts as well."""


@cache
def requests() -> Mapping[str, type[Model]]:
    """The models of all requests that services take, by name."""
    modules = [*map(importlib.import_module, _SERVICES), answering, router]
    return {kind.__name__: kind for module in modules for kind in _received_in(module)}


def _received_in(module: ModuleType) -> Iterator[type[Model]]:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS:
            kind = vars(module).get(node.args[0].id) if isinstance(node.args[0], ast.Name) else None
            if isinstance(kind, type) and issubclass(kind, Model):
                yield kind


def reader_of(kind: type[Model]) -> Reader:
    """What a service does with the bytes of a request before anything else."""
    most = MAX_MESSAGE_BYTES if kind.__name__ == "Message" else MAX_PAYLOAD_BYTES
    return Reader(kind.__name__, lambda data: receive(kind, data), most)


def bodies() -> Mapping[str, tuple[type[Any], Callable[[bytes], object]]]:
    """The models of all bodies by HTTP, by their route, and what reads each."""
    return {f"{row.method} {row.path}": (row.body, partial(_read_body, row)) for row in TABLE if row.body is not Nothing}


def _read_body(row: ApiRow[Any, Any], data: bytes) -> object:
    call: Any = SimpleNamespace(caller=SimpleNamespace(key_id="key", user=LOCAL), limits=CallerLimits(lambda: 0.0))

    async def read() -> object:
        async with row.read_body(call, data) as body:
            return body

    return asyncio.run(read())


def as_json(value: object) -> bytes:
    """Write a body."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
