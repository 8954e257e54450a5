"""Flood a secured system on each subject that a key opens, and with what its server does not count, with honest goals beside it.

    python -m benchmarks.floods [--seconds 6] [--only goal] [--again-after 0]

Of each subject the table says how long an honest goal took beside the flood, against undisturbed, and who the doctor names. In the
end no service may have died, grown by more than a fifth or logged a traceback, the doctor must have named whoever flooded, and no
honest goal may have taken more than three times its usual time.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import statistics
import sys
import tempfile
import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.permissions import of_agent, of_user
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.examination import goals_finding
from ioa.errors import UnavailableError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.runtime.service_spec import service_specs
from tests.integration.security.secured import (
    SERVICES,
    Secured,
    commanding,
    flooding,
    open_intruder,
    open_processes,
    open_secured,
    open_user,
    passed_over,
)
from tests.rig.tracebacks import tracebacks

_HONEST, _POOL = AgentId("calculator"), PoolId("mallory")
_MOST_AGENTS = 30
_MOST_TIMES, _MOST_GROWTH = 3.0, 1.2
_SLACK_SECONDS = 0.5
"""What noticing a flood may take once."""
_REQUEST = bytes(10)
_DEAREST = {
    "ioa.v1.read.": b'{"seq":1,"next_by_subj":">","batch":1000}',
    "$JS.API.CONSUMER.MSG.NEXT.": b'{"batch":100,"expires":1}',
}
"""By the beginnings of subjects, what costs the server most to answer; everywhere else refusing does."""
_UNCOUNTED = {
    "(a trace is refused)": passed_over("ioa.v1.registry.remove"),
    "(subscribing and ending that)": b"SUB ioa.v1.log.> 7\r\nUNSUB 7\r\n",
    "(subscriptions that are refused)": b"SUB ioa.v1.audit.> 7\r\n",
}
"""By what the table calls it, what nats-server counts nothing of."""
_REST_SECONDS = 0.5
_EVERY_SECONDS = 0.5
"""How often an honest goal begins at most. More of them wait for their agent's own quotas, which hides what floods do; and each
takes some kB of what services keep of the last ten thousand groups, which would count as growth."""
_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True)
class Flood:
    """One flood: its subject, and what honest goals took beside it, in seconds; `named` is whom the doctor names then."""

    subject: str
    took: Sequence[float]
    named: str


@dataclass(frozen=True)
class Stood:
    """How the system stood all of them: honest goals undisturbed, what each process holds by what it held, and its tracebacks."""

    usual: float
    floods: Sequence[Flood]
    growth: Mapping[str, float]
    tracebacks: Mapping[str, int]

    def faults(self) -> Iterator[str]:
        """Say what should not be."""
        most = _MOST_TIMES * self.usual + _SLACK_SECONDS
        for flood in self.floods:
            if (took := statistics.median(flood.took)) > most:
                yield f"beside {flood.subject} a goal takes {took:.2f} s, and usually {self.usual:.2f} s"
        yield from (f"nobody is named for {flood.subject}" for flood in self.floods if not flood.named)
        yield from (f"{name} has died" for name, growth in self.growth.items() if not growth)
        yield from (f"{name} grew {growth:.2f} times" for name, growth in self.growth.items() if growth > _MOST_GROWTH)
        yield from (f"{name} logged {number} tracebacks" for name, number in self.tracebacks.items() if number)


async def run(folder: Path, seconds: float, only: str, again_after: float) -> Stood:
    """Start a system, flood it on one subject after the other, and tell how it stood it."""
    numbers = count(1_000)
    async with AsyncExitStack() as stack:
        rows = [row for row in _rows() if re.search(only, row.subject)]
        users = ["user", *(row.owner for row in rows if row.is_user)]
        secured = await stack.enter_async_context(
            open_secured(folder, (_HONEST, f"{_POOL}:{_MOST_AGENTS}"), users=users, gate=True)
        )
        programs = [secured.gate(), *(secured.service(name) for name in SERVICES), secured.agent(_HONEST, _HONEST, _HONEST)]
        processes = await stack.enter_async_context(open_processes(secured, programs))
        user = await stack.enter_async_context(open_user(secured, [_HONEST]))
        inspection = NatsInspection(await stack.enter_async_context(open_intruder(secured, "admin")))
        usual = statistics.median([await _goal(user, next(numbers)) for _ in range(30)][10:])
        held = {name: machine.resident_bytes(process.pid) for name, process in processes.items()}
        floods = []
        for row in rows:
            async with _flooding(secured, row, again_after):
                until, took = time.monotonic() + seconds, [await _goal(user, next(numbers))]
                while time.monotonic() < until:
                    took.append(await _goal(user, next(numbers)))
            floods.append(Flood(row.subject, took, await _named(inspection, row)))
            print(f"{row.subject:<70}{statistics.median(took):6.2f} s  {floods[-1].named}", flush=True)
            await asyncio.sleep(_REST_SECONDS)
            while await _goal(user, next(numbers)) == math.inf:
                pass
        growth = {
            name: 0.0 if process.has_ended else machine.resident_bytes(process.pid) / held[name]
            for name, process in processes.items()
        }
        logs = {program.name: secured.fork_server.log_of(program) for program in programs}
        logged_errors = {name: await asyncio.to_thread(tracebacks, log) for name, log in logs.items()}
    return Stood(usual, floods, growth, logged_errors)


@dataclass(frozen=True)
class _Row:
    """A subject, and whose key opens it: another one's for each, since who has flooded is kept out for a while."""

    owner: str
    key: str
    subject: str
    command: bytes | None = None
    """What is sent instead of requests on a subject, as the wire has it; `subject` says what that is."""

    @property
    def is_user(self) -> bool:
        return self.key == "seed"

    @property
    def name(self) -> str:
        return self.owner if self.is_user else self.key


def _rows() -> Iterator[_Row]:
    """Say of each subject that an agent's or a user's key opens who floods it, with a name for each place that may be any."""
    for place in range(len(of_agent(AgentId(_POOL), _POOL).publish)):
        agent = AgentId(f"{_POOL}-{place}")
        yield _Row(_POOL, agent, of_agent(agent, _POOL).publish[place].replace("*", "c1"))
    for place in range(len(of_user(UserId("eve")).publish)):
        user = UserId(f"eve-{place}")
        yield _Row(user, "seed", of_user(user).publish[place].replace("*", "c1"))
    for place, (called, command) in enumerate(_UNCOUNTED.items()):
        yield _Row(UserId(f"mute-{place}"), "seed", called, command)


def _flooding(secured: Secured, row: _Row, again_after: float) -> AbstractAsyncContextManager[None]:
    if row.command is not None:
        return commanding(secured, row.owner, row.key, row.command, again_after=again_after)
    return flooding(secured, row.owner, row.key, row.subject, _dearest(row.subject), again_after=again_after)


def _dearest(subject: str) -> bytes:
    return next((request for start, request in _DEAREST.items() if subject.startswith(start)), _REQUEST)


async def _goal(user: NatsSystemClient, number: int) -> float:
    """Have a goal done and return how many seconds that took; without end if it did not come back in time. Then rest."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            goal_id = await user.launch(GoalOrder(goal=f"What is {number} + {number}?", agent=_HONEST))
            result = await user.wait_for_result(goal_id)
    except (TimeoutError, UnavailableError):
        return math.inf
    took = time.monotonic() - started
    assert result.reason is Reason.CONCLUDED and str(2 * number) in result.content, result
    await asyncio.sleep(max(0.0, _EVERY_SECONDS - took))
    return took


async def _named(inspection: NatsInspection, row: _Row) -> str:
    """Return as what the doctor names the flooder now; nothing if it does not."""
    slowed = (await inspection.slowed([spec.name for spec in service_specs()])).callers
    told = {f"{one.caller} ({one.family})" for one in slowed if one.caller.lstrip("_") == row.name}
    found = goals_finding([(stream.name, queue) for stream in await inspection.read() for queue in stream.queues])
    waiting = {f"{row.name} (goals wait)"} if f" {row.name} (" in found.message else set()
    return ", ".join(sorted(told | waiting))


def main() -> None:
    """Run it once; exit with 1 if the system did not stand it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.floods", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=6, help="how long each flood lasts at least")
    parser.add_argument("--only", default="", help="only subjects in which this regular expression is found")
    parser.add_argument("--again-after", type=float, default=2.0, help="seconds after which one that was disconnected comes back")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stood = asyncio.run(run(Path(folder), options.seconds, options.only, options.again_after))
    table = Table("subject", "goals", "median s", "longest", "times", "slowed down")
    for flood in stood.floods:
        median = statistics.median(flood.took)
        figures = f"{median:.2f}", f"{max(flood.took):.2f}", f"{median / stood.usual:.1f}"
        table.add_row(flood.subject, str(len(flood.took)), *figures, flood.named)
    machine.console.print(table)
    machine.console.print(f"usual: {stood.usual:.2f} s; grown to { ({n: f'{g:.0%}' for n, g in stood.growth.items()}) }")
    faults = list(stood.faults())
    if faults:
        sys.exit(f"did not stand it: {'; '.join(faults)}")


if __name__ == "__main__":
    main()
