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
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog

from ioa.foreign_text import shown
from ioa.telemetry import log_context

CONTENT = frozenset({"content"})
"""Keys of log lines that contain texts of users and agents."""

MAX_CHARS = 300
"""Maximum characters of a text in a line, except for tracebacks and content."""
_WHOLE = CONTENT | {"exception"}

_HEAD = "Traceback (most recent call last):"
"""The usual start of a traceback, which operators search for."""
_HIDDEN = "[hidden]"
_SECRET_NAMES = frozenset(
    {"password", "passwd", "secret", "token", "seed", "api_key", "apikey", "authorization", "credentials", "jwt"}
)
_SECRETS = re.compile(
    r"(?P<before>://[^\s/@:]*:)[^\s/@]+(?=@)"  # a password in a URL
    r"|(?P<token>://)[^\s/@:]+(?=@)"  # a token in one
    r"|(?P<kind>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<named>\b(?:api[_-]?key|password|passwd|secret|token)\b[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]{4,}"
    r"|\bS[ACNOUX][A-Z2-7]{38,}"  # the seed of an nkey, or most of it
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",  # a JSON web token, such as a user's of NATS
    re.IGNORECASE,
)

Line = MutableMapping[str, Any]
Processor = Callable[[Any, str, Line], Line]


def configure_logs(level: str, style: Literal["json", "console"], *, service: str = "", content: bool = False) -> None:
    """Write structured logs to standard error, also warnings and errors of libraries.

    Args:
        level: The lowest level that is written.
        style: One JSON object per line, or readable lines.
        service: Name of the service in each line.
        content: Whether texts of users and agents are shown, also messages of exceptions.
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
            structlog.processors.format_exc_info if content else structlog.processors.ExceptionRenderer(_show_frames),
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
    if not logging.root.handlers:  # otherwise the process has configured the logs of libraries
        logging.root.addHandler(_Forwarding())


@contextlib.contextmanager
def handed_to_logging() -> Iterator[None]:
    """Send the log lines of IoA to Python's own logging during the block, unless structlog is configured already.

    Warnings and errors are shown; a lower level of Python's logging, such as pytest's `--log-level=INFO`, shows more.
    """
    if structlog.is_configured():
        yield
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            log_context.add_ids,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    try:
        yield
    finally:
        structlog.reset_defaults()


def hide_secrets(_logger: object, _method: str, line: Line) -> Line:
    """Hide secrets by their names and by their looks, and cut long texts, as a processor of structlog."""
    for name, value in line.items():
        line[name] = _HIDDEN if name.lower() in _SECRET_NAMES and value else _masked(value, whole=name in _WHOLE)
    return line


def masked(text: str) -> str:
    """Hide what looks like a secret in a text: passwords in URLs, seeds, tokens, keys."""
    return _SECRETS.sub(_mask, text)


def tell_traceback(error: BaseException) -> None:
    """Write the traceback of an unexpected error to standard error, without secrets."""
    sys.stderr.write(shown(masked("".join(traceback.format_exception(error)))))


def _masked(value: Any, *, whole: bool) -> Any:
    match value:
        case str():
            return masked(value) if whole else _beginning(value)
        case dict():
            return hide_secrets(None, "", dict(value))
        case list() | tuple():
            return [_masked(one, whole=whole) for one in value]
        case None | bool() | int() | float():
            return value
        case _:
            return _beginning(repr(value))


def _beginning(text: str) -> str:
    """Truncate a text after its secrets were hidden, because a part of a secret would not be recognised."""
    found = masked(text)
    return found if len(found) <= MAX_CHARS else f"{found[:MAX_CHARS]}… ({len(text):,} characters)"


def _mask(found: re.Match[str]) -> str:
    kept = (found["before"], found["token"], found["kind"], found["named"])
    return f"{next((part for part in kept if part), '')}{_HIDDEN}"


def _show_controls(_logger: object, _method: str, line: Line) -> Line:
    """Make control characters visible. JSON and `repr` escape them."""
    return {name: shown(value) if isinstance(value, str) else value for name, value in line.items()}


def _naming(service: str) -> Processor:
    return lambda _logger, _method, line: {"service": service, **line} if service else line


def _without_content(_logger: object, _method: str, line: Line) -> Line:
    return {name: value for name, value in line.items() if name not in CONTENT}


def _show_frames(exc_info: structlog.typing.ExcInfo) -> str:
    """Return the stack and the type of an exception. Its message may contain texts of users."""
    return "\n".join(_frames_of(exc_info[1], set()))


def _frames_of(error: BaseException, seen: set[int]) -> Iterator[str]:
    """Yield the parts of a traceback without messages: of the cause first, then of the error, then of the errors in its group.

    Each error is yielded once, because causes can form a cycle.
    """
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _frames_of(before, seen)
        yield "which led to:"
    if error.__traceback__ is not None:
        yield _HEAD
        yield from (part.rstrip("\n") for part in traceback.format_tb(error.__traceback__))
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, BaseExceptionGroup):
        for number, one in enumerate(error.exceptions, start=1):
            yield f"{number} of {len(error.exceptions)}:"
            if id(one) not in seen:
                yield from _frames_of(one, seen)


class _Forwarding(logging.Handler):
    """Write the log lines of libraries, from warnings on, into the same stream and in the same form."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        log = structlog.get_logger(record.name)
        log.log(record.levelno, "library_logged", logger=record.name, message=record.getMessage(), exc_info=record.exc_info)


class _EnduringStream:
    """A stream that drops lines that cannot be written, because the disk is full or the other end is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write a line, or drop it. A closed stream raises ValueError."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        """Flush, or drop."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()
