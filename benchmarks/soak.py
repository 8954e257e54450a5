"""Let a stranger's key and a user's do all that they are allowed, for as long as is said, beside honest goals.

    python -m benchmarks.soak --seconds 3600 --seed 11

A secured system runs with the quotas that it has by default. The stranger and the user send variants of what was said in earnest,
made by a seed, to each family of subjects that their keys open: to each as often as they are answered, never sooner than they are
told to come back, and in all as often as one key may. So they are at every quota and beyond none: who is kept out soaks nothing. An
honest goal is launched each second, whatever became of those before. In the end each must have been answered rightly, ninety-nine
of a hundred within twice the time that they took undisturbed; no service may have died, grown by more than a fifth or logged a
traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import secrets
import sys
import tempfile
import time
from argparse import RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from nats.aio.client import Client

from benchmarks import machine
from benchmarks.trespass import HONEST, OTHER_USER, STRANGER, Trespasser, families_of_agent, recorded
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.permissions import of_user
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.beside import beside
from ioa.errors import IoaError
from ioa.local.fork_server import ChildProcess
from ioa.ports.inspection import DISCONNECTED, SlowedCaller
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.subjects import CALLOUT_STATUS
from tests.integration.security.secured import SERVICES, Secured, open_intruder, open_processes, open_secured, open_user
from tests.rig.tracebacks import tracebacks

_MOST_TIMES, _MOST_GROWTH = 2.0, 1.2
_JUDGED_FROM = 100
"""Of fewer goals there is no ninety-ninth of a hundred."""
_SENT_PER_SECOND = 900.0
"""What one key sends: a little less than the 1,000 messages a second that it may."""
_COUNT_AS_MANY = ("$", CALLOUT_STATUS)
"""How subjects begin where one message counts as up to 20,000, by what it has the server do: `benchmarks.floods` sends there."""
_AT_ONCE = 4
"""How many frames of a family wait for their answers."""
_ANSWER_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
_SETTLED_PART = 0.1
"""Which part of the time a service has to take what it keeps of everybody, before its growth is measured."""


class Pace:
    """Has whoever waits here go on so often that no more than so many messages a second are sent."""

    def __init__(self, per_second: float) -> None:
        self._each = 1 / per_second
        self._next = 0.0

    async def wait(self) -> None:
        """Wait until a message may be sent."""
        at = max(self._next, time.monotonic())
        self._next = at + self._each
        await asyncio.sleep(at - time.monotonic())


@dataclass
class Honest:
    """What became of honest goals: seconds each took, without end if none came, and what was answered wrongly."""

    took: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def late(self) -> float:
        """Within how many seconds ninety-nine of a hundred were answered."""
        return sorted(self.took)[math.ceil(0.99 * len(self.took)) - 1]


@dataclass(frozen=True)
class Soaked:
    """How the system stood it: honest goals before and meanwhile, what was sent, and what each process holds by what it held."""

    before: Honest
    beside: Honest
    sent: Mapping[str, int]
    growth: Mapping[str, float]
    cores: Mapping[str, float]
    tracebacks: Mapping[str, int]
    stored: tuple[int, int]
    slowed: Sequence[SlowedCaller]

    def faults(self) -> Iterator[str]:
        """Say what should not be."""
        yield from (f"{name} has died" for name, growth in self.growth.items() if not growth)
        yield from (f"{name} grew {growth:.2f} times" for name, growth in self.growth.items() if growth > _MOST_GROWTH)
        yield from (f"{name} logged {number} tracebacks" for name, number in self.tracebacks.items() if number)
        yield from (
            f"{one.caller} was kept out ({one.family}), and did nothing then" for one in self.slowed if one.family in DISCONNECTED
        )
        for honest in (self.before, self.beside):
            yield from honest.wrong
            if lost := honest.took.count(math.inf):
                yield f"{lost} honest goals were not answered"
        usual, late = self.before.late(), self.beside.late()
        if min(len(self.before.took), len(self.beside.took)) >= _JUDGED_FROM and late > _MOST_TIMES * usual:
            yield f"99 % of honest goals take up to {late:.2f} s, and usually {usual:.2f} s"


async def run(folder: Path, seconds: float, usual_seconds: float, seed: int) -> Soaked:
    """Start a system, measure honest goals, have both do all that they may, and tell how it was stood."""
    chance, numbers, sent = random.Random(seed), count(10_000), Counter[str]()
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(folder, (HONEST, STRANGER), gate=True))
        programs = [secured.gate(), *(secured.service(name) for name in SERVICES), secured.agent(HONEST, HONEST, HONEST)]
        processes = await stack.enter_async_context(open_processes(secured, programs))
        user = await stack.enter_async_context(open_user(secured, [HONEST]))
        admin = await stack.enter_async_context(open_intruder(secured, "admin"))
        stranger = await stack.enter_async_context(open_intruder(secured, STRANGER, STRANGER))
        other = await stack.enter_async_context(open_intruder(secured, OTHER_USER))
        recorder = await recorded(admin, user)
        before = await _goals(user, usual_seconds, numbers)

        async with AsyncExitStack() as hostile:
            for client, opened in ((stranger, families_of_agent(STRANGER)), (other, of_user(OTHER_USER).publish)):
                families = [family for family in opened if not family.startswith(_COUNT_AS_MANY)]
                trespasser = Trespasser(client, families, recorder, random.Random(chance.random()), STRANGER)
                await hostile.enter_async_context(beside(_at_every_quota(trespasser, families, sent)))
            settling = await _goals(user, _SETTLED_PART * seconds, numbers)
            held = {name: machine.resident_bytes(process.pid) for name, process in processes.items() if not process.has_ended}
            stored = await _stored(admin)
            spent, since = _spent(secured, processes), time.monotonic()
            after = await _goals(user, (1 - _SETTLED_PART) * seconds, numbers)
            spent_since, took = _spent(secured, processes), time.monotonic() - since
            cores = {name: (seconds_since - spent[name]) / took for name, seconds_since in spent_since.items()}
            slowed = (await NatsInspection(admin).slowed()).callers
        meanwhile = Honest([*settling.took, *after.took], [*settling.wrong, *after.wrong])
        growth = {
            name: 0.0 if process.has_ended else machine.resident_bytes(process.pid) / held[name]
            for name, process in processes.items()
        }
        logs = {program.name: secured.fork_server.log_of(program) for program in programs}
        logged_errors = {name: await asyncio.to_thread(tracebacks, log) for name, log in logs.items()}
        return Soaked(before, meanwhile, sent, growth, cores, logged_errors, (stored, await _stored(admin)), slowed)


async def _at_every_quota(trespasser: Trespasser, families: Sequence[str], sent: Counter[str]) -> None:
    """Send to each family as often as may be, without end."""
    pace = Pace(_SENT_PER_SECOND)

    async def to(family: str) -> None:
        while True:
            await pace.wait()
            answer = await trespasser.throw(family, _ANSWER_SECONDS)
            sent[answer.code] += 1
            await asyncio.sleep(answer.again_after.total_seconds())

    async with asyncio.TaskGroup() as group:
        for family in families:
            for _ in range(_AT_ONCE):
                group.create_task(to(family))


async def _goals(user: NatsSystemClient, seconds: float, numbers: Iterator[int]) -> Honest:
    """Launch a goal each second for so many, at least one, and tell what became of them."""
    honest = Honest()

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
    return honest


def _spent(secured: Secured, processes: Mapping[str, ChildProcess]) -> dict[str, float]:
    """How many CPU seconds each process has used, those who send included."""
    pids = {name: process.pid for name, process in processes.items() if not process.has_ended}
    pids |= {"nats-server": secured.server.pid, "those who send": os.getpid()}
    return {name: machine.cpu_seconds(pid) for name, pid in pids.items()}


async def _stored(admin: Client) -> int:
    facts = await NatsInspection(admin).storage()
    return facts.stored_bytes if facts else 0


def _tell(soaked: Soaked) -> None:
    """Print what was sent and what came of it."""
    codes = sorted(soaked.sent.items(), key=lambda item: -item[1])
    print(f"{sum(soaked.sent.values())} frames: {', '.join(f'{number} {code}' for code, number in codes)}")
    for what, honest in (("undisturbed", soaked.before), ("beside them", soaked.beside)):
        took = sorted(honest.took)
        half = took[len(took) // 2]
        print(f"{len(took)} honest goals {what}: half within {half:.2f} s, 99 % {honest.late():.2f}, all {took[-1]:.2f}")
    print(f"stored: {soaked.stored[0] / 1e6:.0f} MB, and {soaked.stored[1] / 1e6:.0f} MB in the end")
    print(f"slowed down in the end: {', '.join(sorted(f'{one.caller} ({one.family})' for one in soaked.slowed))}")
    for name, growth in soaked.growth.items():
        print(f"{name:<20} grown to {growth:.0%}, {soaked.tracebacks[name]} tracebacks")
    print(f"cores: {', '.join(f'{name} {cores:.2f}' for name, cores in soaked.cores.items())}")


def main() -> None:
    """Run it once; exit with 1 if the system did not stand it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3_600, help="for how long they do what they may")
    parser.add_argument("--usual", type=float, default=_JUDGED_FROM, help="for how many seconds goals are undisturbed before")
    parser.add_argument("--seed", type=int, default=None, help="decides what is sent")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    print(f"seed {seed}; {machine.describe()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soaked = asyncio.run(run(Path(folder), options.seconds, options.usual, seed))
    _tell(soaked)
    if faults := list(soaked.faults()):
        sys.exit(f"did not stand it (seed {seed}): {'; '.join(faults)}")


if __name__ == "__main__":
    main()
