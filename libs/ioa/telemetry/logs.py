"""Structured logs: JSON lines in services, readable lines on a terminal, both with the ids of goal, group, task and agent.

Text of users and agents is shown only if that is enabled: it is logged under the keys in `CONTENT`, and occurs in the messages of
exceptions. Secrets are hidden everywhere in a line. Long texts are truncated.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from itertools import islice
from types import TracebackType
from typing import Any, Literal, TextIO, cast

import structlog

from ioa.foreign_text import shown
from ioa.telemetry import log_context

CONTENT = frozenset({"content"})
"""The keys under which log lines carry what users and agents wrote."""

MAX_CHARS = 300
"""How much a line shows of a text. Tracebacks of our own frames, and content where that is shown, stand whole."""
_WHOLE = CONTENT | {"exception"}
_LOOKED_AT_CHARS, _LOOKED_AT_PARTS = 50 * MAX_CHARS, 100
"""How much of a text is searched, and how many parts of a list or table: enough for the whole of any secret of which a line
would show the beginning."""
_SAME_EVERY_SECONDS = 1.0
_MAX_KINDS = 1_000
"""Maximum number of kinds of lines whose last time is known."""

_HEAD = "Traceback (most recent call last):"
"""What people look for in logs."""
_HIDDEN = "[hidden]"
_SECRET_NAMES = frozenset(
    {"password", "passwd", "secret", "token", "seed", "api_key", "apikey", "authorization", "credentials", "jwt"}
)
_SECRETS = re.compile(
    r"(?P<before>://[^\s/@:]*:)[^\s/@]+(?=@)"  # a password in a URL
    r"|(?P<token>://)[^\s/@:]+(?=@)"  # a token in one
    r"|(?P<kind>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<named>\b(?:api[_-]?key|password|passwd|secret|token)\b[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]{4,}"
    r"|\bS[ACNOUX][A-Z2-7]{38,}"  # the seed of an nkey, or most of one
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",  # a JSON web token, such as a user's of NATS
    re.IGNORECASE,
)

Line = MutableMapping[str, Any]
Processor = Callable[[Any, str, Line], Line]


def configure_logs(level: str, style: Literal["json", "console"], *, service: str = "", content: bool = False) -> None:
    """Write structured logs to standard error, those of libraries from warnings on among them.

    Args:
        level: The least level that is written.
        style: One JSON object a line, or lines for people.
        service: Stands in each line.
        content: Show what users and agents wrote, which includes the messages of exceptions.
    """
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if style == "console" else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            log_context.add_ids,
            _naming(service),
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info if content else _show_frames,
            *([] if content else [_without_content]),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            hide_secrets,
            *([_show_controls] if style == "console" else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _EnduringStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    sys.excepthook = lambda _kind, error, _traceback: tell_traceback(error)
    if not logging.root.handlers:  # whoever has chosen where libraries log to keeps that
        logging.root.addHandler(_Forwarding())


class OneASecond:
    """Rate limit of log lines: one line of each kind per second.

    Args:
        now: Returns monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._written: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def left_out(self, kind: Hashable) -> int | None:
        """Return the number of lines of a kind that were dropped since the last written line; None: drop this line too."""
        now = self._now()
        at, dropped = self._written.get(kind, (float("-inf"), 0))
        if now - at < _SAME_EVERY_SECONDS:
            self._written[kind] = (at, dropped + 1)
            return None
        self._written[kind] = (now, 0)
        self._written.move_to_end(kind)
        if len(self._written) > _MAX_KINDS:
            self._written.popitem(last=False)
        return dropped


def hide_secrets(_logger: object, _method: str, line: Line) -> Line:
    """Hide secrets by their names and by their looks, and cut long texts, as a processor of structlog."""
    for name, value in line.items():
        line[name] = _HIDDEN if name.lower() in _SECRET_NAMES and value else _masked(value, whole=name in _WHOLE)
    return line


def masked(text: str) -> str:
    """Hide what looks like a secret in a text: passwords in URLs, seeds, tokens, keys."""
    return _SECRETS.sub(_mask, text)


def tell_traceback(error: BaseException) -> None:
    """Write the whole traceback of an error that nobody foresaw, its groups and causes with it, but no secrets."""
    sys.stderr.write(shown(masked("".join(traceback.format_exception(error)))))


def _masked(value: Any, *, whole: bool) -> Any:
    match value:
        case str():
            return masked(value) if whole else _beginning(value)
        case dict():
            return hide_secrets(None, "", dict(islice(value.items(), _LOOKED_AT_PARTS)))
        case list() | tuple():
            return [_masked(one, whole=whole) for one in value[:_LOOKED_AT_PARTS]]
        case None | bool() | int() | float():
            return value
        case _:
            return _beginning(repr(value))


def _beginning(text: str) -> str:
    """Cut a text behind its secrets, since of one that is cut the rest is not known as one; very long ones are searched in part."""
    found = masked(text[:_LOOKED_AT_CHARS])
    if len(found) <= MAX_CHARS and len(text) <= _LOOKED_AT_CHARS:
        return found
    return f"{found[:MAX_CHARS]}… ({len(text):,} characters)"


def _mask(found: re.Match[str]) -> str:
    kept = (found["before"], found["token"], found["kind"], found["named"])
    return f"{next((part for part in kept if part), '')}{_HIDDEN}"


def _show_controls(_logger: object, _method: str, line: Line) -> Line:
    """Make visible what a terminal would obey. JSON escapes it, as does the `repr` of what is no text."""
    return {name: shown(value) if isinstance(value, str) else value for name, value in line.items()}


def _naming(service: str) -> Processor:
    def name(_logger: object, _method: str, line: Line) -> Line:
        if service:
            line.setdefault("service", service)
        return line

    return name


def _without_content(_logger: object, _method: str, line: Line) -> Line:
    return {name: value for name, value in line.items() if name not in CONTENT}


def _show_frames(_logger: object, _method: str, line: Line) -> Line:
    """Show where an exception came from and of which type it is, but not its message, in which users' texts may stand."""
    error = line.pop("exc_info", None)
    if isinstance(error, tuple):
        error = error[1]
    elif error and not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    if error:
        line["exception"] = "\n".join(_frames_of(error))
    return line


def _frames_of(error: BaseException) -> Iterator[str]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _frames_of(before)
        yield "which led to:"
    if error.__traceback__ is not None:
        yield _HEAD
    yield from _stack(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, BaseExceptionGroup):
        for number, one in enumerate(error.exceptions, start=1):
            yield f"{number} of {len(error.exceptions)}:"
            yield from _frames_of(one)


def _stack(frames: TracebackType | None) -> Iterator[str]:
    for part in traceback.format_tb(frames):
        yield part.rstrip("\n")


class _Forwarding(logging.Handler):
    """Write the log lines of libraries, from warnings on, into the same stream and in the same form."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        log = structlog.get_logger(record.name)
        log.log(record.levelno, "library_logged", logger=record.name, message=record.getMessage(), exc_info=record.exc_info)


class _EnduringStream:
    """A stream that drops what cannot be written: a full disk, or an end that is closed, must not stop who reports it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write a line whole, or drop it. To a closed stream Python says ValueError."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        """Flush, or drop."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()
