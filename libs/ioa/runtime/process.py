"""Processes of the system: settings, structured logs, health checks, and the end after SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any

import structlog

from ioa.concurrency import TaskGroup
from ioa.errors import IoaError, only_error
from ioa.foreign_text import shown
from ioa.runtime.hidden_keys import hide_keys
from ioa.runtime.settings import S, settings_from
from ioa.telemetry import fault_points
from ioa.telemetry.health import open_health
from ioa.telemetry.logs import configure_logs, masked, tell_traceback
from ioa.telemetry.process_metrics import describe_build

_AFTERMATH = timedelta(seconds=2)
"""Maximum time from the end of `main` to the end of the process."""

_YOUNG_OBJECTS = 10_000
"""Threshold of garbage collection: at the default, a router spends a seventh of its time on it."""

_log = structlog.get_logger(__name__)


def run_process(
    kind: type[S],
    main: Callable[[S, StopSignal], Coroutine[Any, Any, None]],
    environment: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
) -> None:
    """Run a process until SIGTERM or SIGINT sets its signal; exit with 2 on an error of IoA, with 1 on any other error.

    The process ends even if threads and tasks still run: soon after `main`, and at the latest `stops_within` after the signal.

    Args:
        kind: The settings to read.
        main: Runs until the signal is set.
        environment: Variables with the settings. Default: the variables of the process.
        name: Name in logs and metrics. Default: the package that was started.
    """
    try:
        environment = os.environ if environment is None else environment
        settings = settings_from(kind, environment)
        fault_points.arm(environment.get(fault_points.VARIABLE))
        hide_keys(settings, os.environ)
        service = name or _started_package()
        configure_logs(settings.log_level, settings.log_format, service=service, content=settings.log_content)
        describe_build(service)
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            code = _run(runner, settings, main)
            _end_by_force(_AFTERMATH, code)
    except IoaError as error:
        code = report_error(error)
    if code:
        sys.exit(code)


def _run(runner: asyncio.Runner, settings: S, main: Callable[[S, StopSignal], Coroutine[Any, Any, None]]) -> int:
    """Run the process and return its exit code."""
    try:
        runner.run(_until_stopped(settings, main))
    except (IoaError, ExceptionGroup) as error:
        found = only_error(error)
        if found is not None:
            return report_error(found)
        tell_traceback(error)
        return 1
    return 0


def report_error(error: IoaError) -> int:
    """Write to standard error why a process cannot run, and return its exit code."""
    sys.stderr.write(f"error: {shown(masked(str(error)))}\n")
    return 2


def _end_by_force(after: timedelta, code: int) -> None:
    """End the process after a while if it still runs. An alarm also interrupts an event loop that hangs."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(Exception):  # the alarm may interrupt the write of another line
            _log.warning("ended_by_force", code=code)
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, after.total_seconds())


def _started_package() -> str:
    """Return the package that `python -m` runs, as services are named: `ioa-router`."""
    specification = sys.modules["__main__"].__spec__
    return (specification.parent or specification.name if specification else "ioa").replace("_", "-")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop if it is installed (the extra `speed`), or None for the loop of asyncio."""
    if find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


class StopSignal:
    """Set by SIGTERM and SIGINT. A process that does not wait for it yet is cancelled."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._awaited = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether the process has started, and was not asked to stop."""
        return self._awaited and not self._event.is_set()

    @property
    def is_set(self) -> bool:
        """Whether the signal is set."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the signal is set."""
        self._awaited = True
        await self._event.wait()

    def set(self) -> None:
        """Set the signal."""
        self._event.set()
        if not self._awaited and self.task is not None:
            self.task.cancel()


async def _until_stopped(settings: S, main: Callable[[S, StopSignal], Coroutine[Any, Any, None]]) -> None:
    loop, stop = asyncio.get_running_loop(), StopSignal()
    loop.set_exception_handler(_log_unhandled)
    async with AsyncExitStack() as stack:
        if settings.metrics_port is not None:
            await stack.enter_async_context(open_health(settings.metrics_port, lambda: stop.is_awaited, settings.metrics_address))
        group = await stack.enter_async_context(TaskGroup())
        stop.task = group.create_task(main(settings, stop))

        def handle(_signal: int, _frame: FrameType | None) -> None:
            # No handler of the event loop, because a loop that hangs does not call it.
            if settings.stops_within is not None and not stop.is_set:
                _end_by_force(settings.stops_within, 1)
            if not loop.is_closed():
                loop.call_soon_threadsafe(stop.set)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)


def _log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an unhandled error, except for a name lookup of uvloop whose connection attempt was cancelled."""
    if isinstance(context.get("exception"), socket.gaierror) and not isinstance(context.get("future"), asyncio.Task):
        _log.debug("name_not_found", error=str(context["exception"]))
    else:
        loop.default_exception_handler(context)
