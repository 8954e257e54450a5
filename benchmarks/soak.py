"""Let a stranger's key and a user's do all that they are allowed, for as long as is said, beside honest goals.

    python -m benchmarks.soak --seconds 3600 --seed 11 --folder /var/tmp/soak

A secured system runs with the quotas that it has by default. The stranger and the user send variants of what was said in earnest,
made by a seed, to each family of subjects that their keys open: to each as often as they are answered, never sooner than they are
told to come back, and in all as often as one key may. So they are at every quota and beyond none: who is kept out soaks nothing.
They do it in a process of their own (`benchmarks.soak_senders`), so that what it takes to be hostile delays no honest goal. One of
those is launched each second, whatever became of those before. Goals and the audit log are kept for five minutes and not for
months, so that soon as many go as come, and whatever grows still is lost; but for the ids of goals that were removed, which stay
taken for ever, and are told apart. In the end each honest goal must have been answered rightly, ninety-nine of a hundred within
twice the time that they took undisturbed; no service may have died, grown by more than a fifth or logged a traceback, nor may the
store have grown. Each minute it tells how all stands.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import secrets
import statistics
import sys
import tempfile
import time
from argparse import RawDescriptionHelpFormatter
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import nats.errors

from benchmarks import machine
from benchmarks.trespass import HONEST, STRANGER, recorded
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.keys import stream_of
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import ENDED, GOALS
from ioa.beside import beside
from ioa.errors import IoaError
from ioa.local.fork_server import ChildProcess, Program
from ioa.ports.inspection import DISCONNECTED, SlowedCaller
from ioa.ports.stream_stats import StreamStats
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from tests.integration.security.secured import SERVICES, Secured, open_intruder, open_processes, open_secured, open_user
from tests.rig.deadline import eventually
from tests.rig.tracebacks import tracebacks

_MOST_TIMES, _MOST_GROWTH = 2.0, 1.2
_JUDGED_FROM = 100
"""Of fewer goals there is no ninety-ninth of a hundred."""
_USUAL_SECONDS = 300.0
"""Of 300 goals three are slower than the ninety-ninth of a hundred. Of 100 one is, so that the time would be that of a single goal:
two runs of the same system found 0.06 and 0.12 s."""
_PATIENCE_SECONDS = 120.0
"""Longer than a task waits for who is there and reports nothing (two leases of it, a minute): the stranger's card, which is the
honest agent's with changes, may have it chosen for one."""
_SETTLED_PART = 0.25
"""After which part of the time a process has taken what it keeps of everybody, and its growth begins to count."""
_KEEP = "PT5M"
"""How long goals, and lines of the audit log, are kept."""
_SETTLES = 1_200
"""With how many honest goals, one a second, a run is long enough for that of nats-server and the store: in the first minutes goals
on record, dead letters, and goals that wait, become as many as may be."""
_COMPARED = 10
"""Which part of what was measured since is compared with the last such part: what a process holds goes up and down all the time."""
_SERVER, _SENDERS = "nats-server", "those who send"
_LOOK_SECONDS = 1.0
_TELL_SECONDS, _KEPT_EVERY = 60.0, 5
"""How often it is told how all stands, and looked who is kept out, of whom services tell for a minute longer than he is; and after
how many times it is looked what the store keeps: that takes as long as a goal, and one in a hundred may be late."""


@dataclass
class Honest:
    """What became of honest goals: seconds each took, without end if none came, and what was answered wrongly."""

    took: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def late(self) -> float:
        """Within how many seconds ninety-nine of a hundred were answered."""
        return sorted(self.took)[math.ceil(0.99 * len(self.took)) - 1]

    @property
    def lost(self) -> int:
        """How many were not answered."""
        return self.took.count(math.inf)


@dataclass(frozen=True)
class Kept:
    """What the store holds: bytes of goals that wait, of what stays of each goal that was removed, and of all else.

    Those that wait are not judged: nats-server bounds them by number, and they take some minutes to be as many as may wait. Nor is
    what stays: no goal runs twice, so that its id stays taken.
    """

    waiting_bytes: int
    staying_bytes: int
    bytes: int


@dataclass(frozen=True)
class Soaked:
    """How the system stood it: honest goals before and meanwhile, what was sent, and what each process holds by what it held.

    `kept` is what the store held when that had settled, and at last.
    """

    before: Honest
    beside: Honest
    sent: Mapping[str, int]
    growth: Mapping[str, float]
    cores: Mapping[str, float]
    tracebacks: Mapping[str, int]
    kept: tuple[Kept, Kept]
    slowed: Sequence[SlowedCaller]

    @property
    def _settled(self) -> Mapping[str, float]:
        """The growth of all that had settled before."""
        if len(self.beside.took) >= _SETTLES:
            settled, ended = self.kept
            return {**self.growth, "what the store keeps": ended.bytes / max(1, settled.bytes)}
        return {name: growth for name, growth in self.growth.items() if name != _SERVER}

    @property
    def _has_enough(self) -> bool:
        return min(len(self.before.took), len(self.beside.took)) >= _JUDGED_FROM

    def unjudged(self) -> Iterator[str]:
        """Say what the run was too short for."""
        if not self._has_enough:
            yield f"99 % of honest goals, of which it takes {_JUDGED_FROM} before and beside"
        if len(self.beside.took) < _SETTLES:
            yield f"the growth of {_SERVER} and of the store, for which it takes {_SETTLES} honest goals"

    def faults(self) -> Iterator[str]:
        """Say what should not be."""
        yield from (f"{name} has died" for name, growth in self.growth.items() if not growth)
        yield from (f"{name} grew {growth:.2f} times" for name, growth in self._settled.items() if growth > _MOST_GROWTH)
        yield from (f"{name} logged {number} tracebacks" for name, number in self.tracebacks.items() if number)
        yield from (
            f"{one.caller} was kept out ({one.family}), and did nothing then" for one in self.slowed if one.family in DISCONNECTED
        )
        if not self.sent:
            yield "nothing was sent"
        for honest in (self.before, self.beside):
            yield from honest.wrong
            if honest.lost:
                yield f"{honest.lost} honest goals were not answered"
        usual, late = self.before.late(), self.beside.late()
        if self._has_enough and late > _MOST_TIMES * usual:
            yield f"99 % of honest goals take up to {late:.2f} s, and usually {usual:.2f} s"


class Watch:
    """Looks each second what every process holds, and each minute who is kept out, and tells then how all stands.

    Args:
        processes: The system's, by name, those who send among them.
        inspection: Asks the system.
        sent: Where those who send write what was answered.
        honest: What becomes of honest goals meanwhile.
        usual: Within how many seconds ninety-nine of a hundred were answered before.
        kept: What the store kept then.
    """

    def __init__(
        self,
        processes: Mapping[str, ChildProcess],
        inspection: NatsInspection,
        sent: Path,
        honest: Honest,
        usual: float,
        kept: Kept,
    ) -> None:
        self._processes = processes
        self._inspection = inspection
        self._sent = sent
        self._honest = honest
        self._usual = usual
        self._kept = kept
        self._resident: defaultdict[str, list[int]] = defaultdict(list)
        self.slowed: dict[tuple[str, str], SlowedCaller] = {}
        """Who was slowed down, or kept out, ever since."""

    async def follow(self, server_pid: int) -> None:
        """Look, for ever."""
        loop, minute = asyncio.get_running_loop(), 1
        started = loop.time()
        while True:
            pids = {name: process.pid for name, process in self._processes.items() if not process.has_ended}
            for name, pid in {**pids, _SERVER: server_pid}.items():
                with suppress(OSError, StopIteration):  # it has ended just now
                    resident = machine.resident_bytes(pid)
                    self._resident[name].append(resident)
            if loop.time() >= started + minute * _TELL_SECONDS:
                await self._tell(minute)
                minute += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """See who is slowed down or kept out, if that is told now."""
        try:
            for one in (await self._inspection.slowed()).callers:
                self.slowed[one.caller, one.family] = one
        except (nats.errors.Error, IoaError, OSError) as error:
            machine.console.print(f"nobody says who is kept out: {error}")

    def growth(self) -> Mapping[str, float]:
        """Return what each process holds by what it held once it had settled; 0 of one that has died."""
        return {name: grown(held) for name, held in self._resident.items()} | dict.fromkeys(self._dead(), 0.0)

    def _dead(self) -> Sequence[str]:
        return [name for name, process in self._processes.items() if process.has_ended]

    async def _tell(self, minute: int) -> None:
        await self.look()
        if not minute % _KEPT_EVERY:
            with suppress(AssertionError):  # nobody says so now
                self._kept = await _kept(self._inspection)
        honest, resident = self._honest, sum(held[-1] for held in self._resident.values())
        out = sorted({one.caller for one in self.slowed.values() if one.family in DISCONNECTED})
        late = f"99 % within {honest.late():.2f} s (usually {self._usual:.2f})" if honest.took else "none ended"
        machine.console.print(
            f"minute {minute}: {len(honest.took)} goals, {late}, {len(honest.wrong)} wrong, {honest.lost} lost;"
            f" {sum(_sent(self._sent).values())} frames; {resident / 1e6:.0f} MB resident, {self._kept.bytes / 1e6:.1f} MB kept,"
            f" {self._kept.waiting_bytes / 1e6:.0f} MB wait; load {machine.load()}"
            + "".join(f"; {name} was kept out" for name in out)
            + "".join(f"; {name} has died" for name in self._dead())
        )


def grown(held: Sequence[int]) -> float:
    """Return by how many times it grew what was measured at equal times: the last of it by the first of it since it had settled."""
    settled = held[int(_SETTLED_PART * len(held)) :]
    part = max(1, len(settled) // _COMPARED)
    return statistics.median(settled[-part:]) / statistics.median(settled[:part])


async def run(folder: Path, seconds: float, usual_seconds: float, seed: int) -> Soaked:
    """Start a system, measure honest goals, have both do all that they may, and tell how it was stood."""
    numbers, recorded_file, sent_file = count(10_000), folder / "recorded", folder / "sent"
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_secured(folder, (HONEST, STRANGER), gate=True))
        secured = replace(opened, told=dict.fromkeys(("IOA_KEEP", "IOA_AUDIT_KEEP"), _KEEP))
        programs = [secured.gate(), *(secured.service(name) for name in SERVICES), secured.agent(HONEST, HONEST, HONEST)]
        processes = await stack.enter_async_context(open_processes(secured, programs))
        user = await stack.enter_async_context(open_user(secured, [HONEST]))
        admin = await stack.enter_async_context(open_intruder(secured, "admin"))
        inspection = NatsInspection(admin)
        (await recorded(admin, user)).write(recorded_file)
        before = Honest()
        await _goals(user, usual_seconds, numbers, before)
        kept, late = await _kept(inspection), before.late()
        machine.console.print(f"{len(before.took)} goals undisturbed: 99 % within {late:.2f} s, {kept.bytes / 1e6:.1f} MB kept")

        arguments = [str(secured.folder), str(recorded_file), str(sent_file), str(seed)]
        senders = Program("soak_senders", "benchmarks.soak_senders", arguments)
        async with open_processes(secured, [senders]) as sending:
            meanwhile, all_of_them = Honest(), {**processes, _SENDERS: sending[senders.name]}
            watch = Watch(all_of_them, inspection, sent_file, meanwhile, late, kept)
            async with beside(watch.follow(secured.server.pid)):
                await _goals(user, _SETTLED_PART * seconds, numbers, meanwhile)
                settled = await _kept(inspection)
                spent, since = _spent(secured, all_of_them), time.monotonic()
                await _goals(user, (1 - _SETTLED_PART) * seconds, numbers, meanwhile)
                spent_since, took = _spent(secured, all_of_them), time.monotonic() - since
                cores = {name: (seconds_since - spent[name]) / took for name, seconds_since in spent_since.items()}
            growth = watch.growth()
            await watch.look()
            ended = await _kept(inspection)
        logs = {program.name: secured.fork_server.log_of(program) for program in [*programs, senders]}
        logged_errors = {name: await asyncio.to_thread(tracebacks, log) for name, log in logs.items()}
        slowed = list(watch.slowed.values())
        return Soaked(before, meanwhile, _sent(sent_file), growth, cores, logged_errors, (settled, ended), slowed)


async def _goals(user: NatsSystemClient, seconds: float, numbers: Iterator[int], honest: Honest) -> None:
    """Launch a goal each second for so many, at least one, and note what became of them."""

    async def one(number: int) -> None:
        started = time.monotonic()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                goal_id = await user.launch(GoalOrder(goal=f"What is {number} + {number}?", agent=HONEST))
                result = await user.wait_for_result(goal_id)
        except (TimeoutError, IoaError) as error:
            machine.console.print(f"goal {number}: {str(error) or 'no answer'}")
            honest.took.append(math.inf)
            return
        honest.took.append(time.monotonic() - started)
        if result.reason is not Reason.CONCLUDED or str(2 * number) not in result.content:
            honest.wrong.append(f"goal {number} ended {result.reason}: {result.content}")

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, round(seconds))):
            group.create_task(one(next(numbers)))
            await asyncio.sleep(1)


def _spent(secured: Secured, processes: Mapping[str, ChildProcess]) -> dict[str, float]:
    """How many CPU seconds each process has used, those who send included."""
    pids = {name: process.pid for name, process in processes.items() if not process.has_ended}
    return {name: machine.cpu_seconds(pid) for name, pid in {**pids, _SERVER: secured.server.pid}.items()}


async def _kept(inspection: NatsInspection) -> Kept:
    """See what the store keeps; on a busy machine that takes some tries, and an hour shall not be in vain for one."""

    async def read() -> Sequence[StreamStats]:
        with suppress(IoaError):
            return await inspection.read()
        return ()

    found = await eventually(read, bool, within=timedelta(seconds=_PATIENCE_SECONDS))
    streams = {stream.name: stream for stream in found}
    waiting, staying = streams[GOALS].size_bytes, streams[stream_of(ENDED)].size_bytes
    kept = sum(stream.size_bytes for stream in streams.values()) - waiting - staying
    return Kept(waiting, staying, kept)


def _sent(file: Path) -> Mapping[str, int]:
    """Read what those who send were answered until now."""
    return dict(json.loads(file.read_bytes())) if file.exists() else {}


def _tell(soaked: Soaked) -> None:
    """Print what was sent and what came of it."""
    codes = sorted(soaked.sent.items(), key=lambda item: -item[1])
    print(f"{sum(soaked.sent.values())} frames: {', '.join(f'{number} {code}' for code, number in codes)}")
    for what, honest in (("undisturbed", soaked.before), ("beside them", soaked.beside)):
        took = sorted(honest.took)
        half = took[len(took) // 2]
        print(f"{len(took)} honest goals {what}: half within {half:.2f} s, 99 % {honest.late():.2f}, all {took[-1]:.2f}")
    settled, ended = soaked.kept
    in_the_end = f"{ended.bytes / 1e6:.1f} MB in the end; {ended.waiting_bytes / 1e6:.0f} MB of goals wait"
    print(
        f"kept: {settled.bytes / 1e6:.1f} MB, and {in_the_end}; {ended.staying_bytes / 1e6:.1f} MB stay of goals that were removed"
    )
    print(f"slowed down: {', '.join(sorted(f'{one.caller} ({one.family})' for one in soaked.slowed))}")
    for name, growth in soaked.growth.items():
        print(f"{name:<20} grown to {growth:.0%}, {soaked.tracebacks.get(name, 0)} tracebacks")
    print(f"cores: {', '.join(f'{name} {cores:.2f}' for name, cores in soaked.cores.items())}")
    for what in soaked.unjudged():
        print(f"not judged: {what}")


def main() -> None:
    """Run it once; exit with 1 if the system did not stand it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3_600, help="for how long they do what they may")
    parser.add_argument("--usual", type=float, default=_USUAL_SECONDS, help="for how many seconds goals are undisturbed before")
    parser.add_argument("--seed", type=int, default=None, help="decides what is sent")
    parser.add_argument("--folder", type=Path, default=None, help="a new one for store and logs, which stays; else they go")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    print(f"seed {seed}; {machine.describe()}", flush=True)
    if options.folder is not None:
        options.folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() if options.folder is None else nullcontext(options.folder) as folder:
        soaked = asyncio.run(run(Path(folder), options.seconds, options.usual, seed))
    _tell(soaked)
    if faults := list(soaked.faults()):
        sys.exit(f"did not stand it (seed {seed}): {'; '.join(faults)}")


if __name__ == "__main__":
    main()
