"""A program that speaks JSON lines, whatever language it is written in, as an agent: one process for each task.

It reads one line from stdin, and writes lines to stdout, of which the last says how it went. It works in a folder of its own, where
the files of the task lie and its own are taken from, with an environment that holds nothing but what is named. It runs in
`ioa.sandbox`, so that a program of somebody else can do no harm; one that is trusted, and wants the network, may do without.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Unpack

import structlog

from ioa.adopt.membership import Card, adopted, as_object, failure, hear
from ioa.agent.definition import InputFile, TaskContext
from ioa.agent.workspace import MAX_ARTIFACTS_BYTES
from ioa.errors import InvalidInputError, TaskError
from ioa.foreign_text import shown_in_line
from ioa.hosting.agent import Agent
from ioa.json_text import parse_texts
from ioa.protocol.messages import MAX_ARTIFACTS
from ioa.sandbox import AUTO, SETTING, Level, SandboxLimits, lay, level_here, run

LIMITS = SandboxLimits(
    cpu=timedelta(minutes=30),
    wall_clock=timedelta(hours=2),
    memory_bytes=4 << 30,
    memory_in_all_bytes=8 << 30,
    processes=256,
    file_bytes=100_000_000,
    box_bytes=MAX_ARTIFACTS_BYTES,
    files=10_000,
    epoll=True,
)
"""What a command may use, unless its author says otherwise. Without epoll no program of Node.js or Go would start."""
_TO_END = timedelta(seconds=5)
"""How long it may take to end after its result, or after it was told to stop."""
_MAX_LINE_BYTES = 8_000_000
_LOOK_LINES, _LOOK_BYTES = 1_000, 1_000_000
"""How much of what it prints is taken at a time, before it is looked at again whether it may go on."""
_MAX_NAMED_CHARS = 4_096
"""How much is kept of a file's name, path and media type; the longest path that Linux takes."""
_MAX_SHOWN_CHARS, _MAX_LOGGED_LINES = 2_000, 10_000
_CONFINED = "In its sandbox it reads the system's programs and what is named as readable; one that you trust may do without."
_ORDER = ".task.json"
_READ_ORDER = ["/bin/sh", "-c", f'exec "$@" <{_ORDER}', "command"]

_log = structlog.get_logger(__name__)


def command(
    agent_id: str,
    argv: Sequence[str],
    *,
    description: str,
    env: Sequence[str] = (),
    network: Sequence[int] = (),
    readable: Sequence[str | Path] = (),
    limits: SandboxLimits = LIMITS,
    sandbox: bool = True,
    **card: Unpack[Card],
) -> Agent:
    """Adopt a program, which is started for each task and speaks JSON lines.

    On stdin it finds one object: `task, goal, goal_id, task_id, task_key, attempt, inputs, results, workspace`; files lie in its
    working folder, where `path` says. It writes objects, one a line: `{"progress": …, "fraction": …}`,
    `{"spend": {"tokens": …, "answer_tokens": …, "cost": …}}`, `{"artifact": {"name": …, "path": …}}`, and at last `{"result": …}`
    or `{"error": …}`. Other output is ignored, and its first 10,000 lines are logged; so is a line of more than 8 MB, or with more
    than 100,000 texts, or 1 MB beside them. Cancelling sends SIGTERM to all of its processes, and SIGKILL 5 s later.

    Args:
        agent_id: As of any agent.
        argv: The program and its arguments. A task never is among them. What names a file that is here is given by its whole path,
            since the program works elsewhere, and may be read in its sandbox.
        description: What it does.
        env: Names of environment variables that it is given, such as the one with its key; it gets no other.
        network: Ports to which it may open TCP connections from its sandbox, which has no name service.
        readable: What else it may read in its sandbox, such as the environment that it is installed in.
        limits: What it may use. Others than the default leave out epoll, as they should for a program that runs what strangers
            wrote, unless they say `epoll=True`.
        sandbox: Whether it is confined. False: it may do all that you may, but for the limits and the environment.
        card: What else a card may say.

    Raises:
        InvalidInputError: There is no program, or the card cannot be valid.
    """
    if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
        raise InvalidInputError(f"Agent {agent_id!r} has no command.", hint='Write it as a list: ["prog", "--option"].')
    program = Path(argv[0]).name
    placed = [_placed(shutil.which(argv[0]) or argv[0]), *map(_placed, argv[1:])]
    runnable = [*_READ_ORDER, *placed]
    also = [*map(Path, readable), *(Path(part) for part, said in zip(placed, argv, strict=True) if part != said)]

    def start(task: str, ctx: TaskContext) -> str:
        box, output = ctx.workspace / "box", ctx.workspace / "output.txt"
        _furnish(box, task, ctx)
        environment = {"HOME": str(box), "PATH": os.defpath, **{name: os.environ[name] for name in env if name in os.environ}}
        level = level_here(os.environ.get(SETTING, AUTO)) if sandbox else Level.NONE
        output.touch()
        with output.open("rb") as printed:
            heard = _Heard(program, printed, ctx)
            reason = run(
                runnable, box, limits, level, network, output=output, readable=also, environment=environment,
                cancelled=lambda: ctx.cancelled, overdue=heard.listen, grace=_TO_END,
            )  # fmt: skip
            heard.finish()
        if ctx.cancelled:
            raise TaskError(f"{program} was cancelled.")
        return heard.result(reason, box, is_confined=level is not Level.NONE)

    card = {"needs_sandbox": sandbox, **card}
    return adopted(agent_id, description, card, start)


def _placed(part: str) -> str:
    """Return the whole path of a file that is named from here; anything else as it is."""
    try:
        return str(Path(part).absolute()) if not Path(part).is_absolute() and Path(part).is_file() else part
    except (OSError, ValueError):  # too long for a name, or with a zero in it
        return part


def _furnish(box: Path, task: str, ctx: TaskContext) -> None:
    """Lay the files of a task into its folder, with the object that tells of them."""
    places: dict[Path, str] = {}
    for number, file in enumerate((*ctx.inputs, *(file for result in ctx.results for file in result.artifacts))):
        places.setdefault(file.path, f"files/{number}/{file.plain_name}")
    lay({place: path for path, place in places.items()}, box)

    def shown(file: InputFile) -> dict[str, str]:
        return {"path": places[file.path]}

    line = json.dumps({**as_object(task, ctx, shown), "workspace": str(box)}, ensure_ascii=False)
    (box / _ORDER).write_text(f"{line}\n", encoding="utf-8")


@dataclass
class _Heard:
    """What a program says, line by line, while it runs."""

    program: str
    printed: IO[bytes]
    ctx: TaskContext

    def __post_init__(self) -> None:
        self._rest = b""
        self._said = ""
        self._logged_lines = 0
        self._files: dict[str, tuple[str, str | None]] = {}
        self._last: dict[str, Any] | None = None
        self._answered_at = 0.0

    def listen(self) -> bool:
        """Take some of what was written since, and say whether the program has answered and should have ended since."""
        self._look()
        return self._last is not None and time.monotonic() - self._answered_at > _TO_END.total_seconds()

    def finish(self) -> None:
        """Take all that is left when the program has ended; of a task that is cancelled as much as is taken at a time."""
        while self._look() and not self.ctx.cancelled:
            pass

    def _look(self) -> bool:
        """Take as much as is taken at a time, and say whether there may be more."""
        room = _LOOK_BYTES
        for _ in range(_LOOK_LINES):
            if not (read := self.printed.readline(room)):
                return room == 0
            room -= len(read)
            self._rest = (self._rest + read)[:_MAX_LINE_BYTES]  # of a longer line nothing is JSON any more
            if read.endswith(b"\n"):
                line, self._rest = self._rest, b""
                self._take(line)
        return True

    def _take(self, line: bytes) -> None:
        try:
            said = parse_texts(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            self._ignore(line.decode("utf-8", "replace").strip())
        elif "result" in said or "error" in said:
            self._last, self._answered_at = said, time.monotonic()
        else:
            hear(said, self.ctx)
            if isinstance(made := said.get("artifact"), dict):
                self._keep(made)

    def _keep(self, made: dict[str, Any]) -> None:
        name, path, media_type = (_start_of(made.get(part)) for part in ("name", "path", "media_type"))
        name = name or ""
        self._files[name] = (name if path is None else path, media_type)
        if len(self._files) > MAX_ARTIFACTS:
            raise TaskError(f"{self.program} has made more than {MAX_ARTIFACTS} files.", hint="Pack them into one archive.")

    def _ignore(self, text: str) -> None:
        if text:
            self._said = text[:_MAX_SHOWN_CHARS]
            self._logged_lines += 1
            if self._logged_lines <= _MAX_LOGGED_LINES:
                _log.info("command_output", task_id=self.ctx.task_id, content=self._said)

    def result(self, reason: str, box: Path, *, is_confined: bool) -> str:
        """Return what the program has answered, when it has ended, and attach its files.

        Raises:
            TaskError: It failed, or did not answer.
        """
        if self._rest:
            self._take(self._rest)
        if self._last is None:
            said = f", and said last: {shown_in_line(self._said)!r}." if self._said else "."
            raise TaskError(
                f"{self.program} {reason or 'ended'} without a result{said}",
                hint=_CONFINED if is_confined and reason else 'Its last line has to be {"result": "…"} or {"error": "…"}.',
            )
        if "error" in self._last:
            raise failure(self.program, self._last["error"])
        if not isinstance(self._last["result"], str):
            raise TaskError(f"The result of {self.program} is {type(self._last['result']).__name__}, and not text.")
        for name, (path, media_type) in self._files.items():
            self._attach(name, box.resolve(), path, media_type)
        return self._last["result"]

    def _attach(self, name: str, box: Path, told: str, media_type: str | None) -> None:
        """Attach a file of the program's folder. A link out of it is followed nowhere."""
        path = (box / told).resolve()
        if not path.is_relative_to(box) or not path.is_file():
            raise TaskError(f"{self.program} has made no file {shown_in_line(name)!r} in its folder.")
        self.ctx.artifact(name, path.read_bytes(), media_type)


def _start_of(text: object) -> str | None:
    return text[:_MAX_NAMED_CHARS] if isinstance(text, str) else None
