"""A program that exchanges JSON lines, as an agent: one process for each task."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Unpack

import structlog

from ioa.adopt.adopted_member import Card, adopted, as_object, failure, hear
from ioa.agent.task_context import InputFile, TaskContext
from ioa.errors import InvalidInputError, TaskError
from ioa.foreign_text import shown_in_line
from ioa.hosting.agent import Agent
from ioa.json_text import parse_json
from ioa.protocol.messages import MAX_ARTIFACTS
from ioa.sandbox import Level, SandboxLimits, lay, level_here, run

LIMITS = SandboxLimits(
    cpu=timedelta(minutes=30),
    wall_clock=timedelta(hours=2),
    memory_bytes=4 << 30,
    processes=256,
    file_bytes=100_000_000,
    box_bytes=1_000_000_000,
    files=10_000,
)
"""Default limits of a program."""
_GRACE = timedelta(seconds=5)
"""Time to end after the result, or after SIGTERM."""
_MAX_SHOWN_CHARS = 2_000
_CONFINED = "A sandbox hides the network and all files but the system's and those in `readable`; a trusted program runs without it."
_ORDER = ".task.json"
_WITH_ORDER = ["/bin/sh", "-c", f'exec "$@" <{_ORDER}', "command"]

_log = structlog.get_logger(__name__)


def command(
    agent_id: str,
    argv: Sequence[str],
    *,
    description: str,
    env: Sequence[str] = (),
    readable: Sequence[str | Path] = (),
    limits: SandboxLimits = LIMITS,
    sandbox: bool = True,
    **card: Unpack[Card],
) -> Agent:
    """Adopt a program, which is started for each task and exchanges JSON lines.

    Stdin contains one object: `task, goal, goal_id, task_id, task_key, attempt, inputs, results, workspace`; the `path` of a file
    is relative to the working folder. The program prints objects, one per line: `{"progress": …, "fraction": …}`,
    `{"spend": {"tokens": …, "answer_tokens": …, "cost": …}}`, `{"artifact": {"name": …, "path": …}}`, and at last `{"result": …}`
    or `{"error": …}`. Other lines are logged. When a task is cancelled, all processes of the program receive
    SIGTERM, and SIGKILL after 5 s.

    Args:
        agent_id: As for `ioa.Agent`.
        argv: The program and its arguments, without the task. Paths that exist relative to the current folder become absolute, and
            are readable in the sandbox.
        description: What the agent does.
        env: Names of the environment variables that the program receives. Default: none.
        readable: What the program may read in the sandbox, such as the environment in which it is installed.
        limits: The resources of the program.
        sandbox: False to run the program with all permissions and the network of this process.
        card: More fields of the card.

    Raises:
        InvalidInputError: There is no program, or the card is not valid.
    """
    if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
        raise InvalidInputError(f"Agent {agent_id!r} has no command.", hint='Write it as a list: ["prog", "--option"].')
    program = Path(argv[0]).name
    placed = [_placed(shutil.which(argv[0]) or argv[0]), *map(_placed, argv[1:])]
    also = [*map(Path, readable), *(Path(part) for part, given in zip(placed, argv, strict=True) if part != given)]

    def start(task: str, ctx: TaskContext) -> str:
        box, output = ctx.workspace / "box", ctx.workspace / "output.txt"
        _fill(box, task, ctx)
        environment = {"HOME": str(box), "PATH": os.defpath, **{name: os.environ[name] for name in env if name in os.environ}}
        level = level_here() if sandbox else Level.NONE
        output.touch()
        with output.open("rb") as printed:
            lines = _Lines(program, printed, ctx)
            reason = run(
                [*_WITH_ORDER, *placed], box, limits, level, output=output, readable=also, environment=environment,
                cancelled=lambda: lines.is_overdue() or ctx.cancelled, grace=_GRACE,
            )  # fmt: skip
            lines.read()
        if ctx.cancelled:
            raise TaskError(f"{program} was cancelled.")
        return lines.result(reason, box.resolve(), is_confined=level is not Level.NONE)

    return adopted(agent_id, description, {"needs_sandbox": sandbox, **card}, start)


def _placed(part: str) -> str:
    """Return the absolute path of a file that exists relative to the current folder; other arguments unchanged."""
    with suppress(OSError, ValueError):  # too long for a path, or with a null character
        if not Path(part).is_absolute() and Path(part).is_file():
            return str(Path(part).absolute())
    return part


def _fill(box: Path, task: str, ctx: TaskContext) -> None:
    """Copy the files of a task into the program's folder, with the object that describes the task."""
    places: dict[Path, str] = {}
    for number, file in enumerate(ctx.files):
        places.setdefault(file.path, f"files/{number}/{file.plain_name}")
    lay({place: path for path, place in places.items()}, box)

    def described(file: InputFile) -> Mapping[str, str]:
        return {"path": places[file.path]}

    order = json.dumps({**as_object(task, ctx, described), "workspace": str(box)}, ensure_ascii=False)
    (box / _ORDER).write_text(f"{order}\n", encoding="utf-8")


class _Lines:
    """The lines that a program prints."""

    def __init__(self, program: str, printed: IO[bytes], ctx: TaskContext) -> None:
        self._program = program
        self._printed = printed
        self._ctx = ctx
        self._unfinished = b""
        self._other = ""
        self._files: dict[str, Mapping[str, Any]] = {}
        self._answer: dict[str, Any] | None = None
        self._answered_at = 0.0

    def read(self) -> None:
        """Handle the lines that were printed since the last call."""
        for line in self._printed:
            self._unfinished += line
            if line.endswith(b"\n"):
                self._handle()

    def is_overdue(self) -> bool:
        """Read, and return whether the program still runs some time after its answer."""
        self.read()
        return self._answer is not None and time.monotonic() - self._answered_at > _GRACE.total_seconds()

    def _handle(self) -> None:
        line, self._unfinished = self._unfinished, b""
        try:
            message = parse_json(line)
        except ValueError:
            message = None
        match message:
            case {"result": _} | {"error": _}:
                self._answer, self._answered_at = message, time.monotonic()
            case dict():
                hear(message, self._ctx)
                if isinstance(made := message.get("artifact"), dict):
                    self._files[str(made.get("name", ""))] = made
                if len(self._files) > MAX_ARTIFACTS:
                    raise TaskError(
                        f"{self._program} has made more than {MAX_ARTIFACTS} files.", hint="Pack them into one archive."
                    )
            case _:
                self._log(line.decode("utf-8", "replace").strip())

    def _log(self, text: str) -> None:
        if text:
            self._other = text[:_MAX_SHOWN_CHARS]
            _log.info("command_output", task_id=self._ctx.task_id, content=self._other)

    def result(self, reason: str, box: Path, *, is_confined: bool) -> str:
        """Return the answer of a program that has ended, and attach its files.

        Raises:
            TaskError: The program failed, or printed no answer.
        """
        if self._unfinished:
            self._handle()
        if self._answer is None:
            last = f"; its last line is {shown_in_line(self._other)!r}." if self._other else "."
            hint = _CONFINED if is_confined and reason else 'Its last line must be {"result": "…"} or {"error": "…"}.'
            raise TaskError(f"{self._program} {reason or 'ended'} without a result{last}", hint=hint)
        if "error" in self._answer:
            raise failure(self._program, self._answer["error"])
        if not isinstance(result := self._answer["result"], str):
            raise TaskError(f"The result of {self._program} is {type(result).__name__}, not text.")
        for name, made in self._files.items():
            media_type = made.get("media_type")
            content = self._content(name, box, str(made.get("path", name)))
            self._ctx.artifact(name, content, media_type if isinstance(media_type, str) else None)
        return result

    def _content(self, name: str, box: Path, place: str) -> bytes:
        """Return the content of a file in the program's folder. A link out of the folder is not followed."""
        with suppress(OSError, ValueError):  # too long for a path, or with a null character
            path = (box / place).resolve()
            if path.is_relative_to(box) and path.is_file():
                return path.read_bytes()
        raise TaskError(f"{self._program} has made no file {shown_in_line(name)!r} in its folder.")
