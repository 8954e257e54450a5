"""Let a stranger's key and a user's throw malformed frames at everything they may publish to, and see what is left.

    make trespass ARGS="--frames 200000 --seconds 3600 --seed 11"

A secured system runs, and honest goals on it. What was said in earnest meanwhile is recorded, varied by a seed, and sent to each
family of subjects that an agent or a user may publish to. In the end no service may have died, grown by more than a fifth, failed
inside or logged a traceback, and an honest goal takes as long as before. `tests/integration/security`, which `make trespass` runs
first, tries what a stranger would want to achieve.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import statistics
import sys
import tempfile
import time
from argparse import RawDescriptionHelpFormatter
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path

import msgpack
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks import machine
from benchmarks.parts import NO_QUOTAS
from ioa.adapters.nats.permissions import of_agent, of_user
from ioa.adapters.nats.reply_headers import error_in
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import ANY_AGENT, GOALS, WORK
from ioa.errors import RateLimitedError, row_of
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.subjects import OLD_GOAL, ROOT, kind_of
from tests.integration.security.secured import SERVICES, open_intruder, open_processes, open_secured, open_user
from tests.rig.deadline import eventually
from tests.rig.hostile_frames import HostileFrames
from tests.rig.tracebacks import tracebacks

HONEST, STRANGER = AgentId("calculator"), AgentId("mallory")
OTHER_USER = UserId("eve")
"""Whose key throws frames: an honest user is not put off for them."""
_WARM_GOALS, _GOALS = 30, 15
_AT_ONCE = 64
_PATIENCE_SECONDS = 5.0
_DRAIN = timedelta(seconds=120)
_MOST_GROWTH, _MOST_TIME = 1.2, 2.0
_RECORDED_OF_A_LENGTH = 40


@dataclass(frozen=True)
class FrameAnswer:
    """What came back for a frame: its code, and after how long the next one may come, if that was said."""

    code: str
    again_after: timedelta = timedelta(0)


_FULL = FrameAnswer("full", timedelta(minutes=1))
"""That so many goals wait already as may. It says not for how long: our clients have who launches goals wait for so long."""


@dataclass
class Sent:
    """What came back, by family of subjects and code."""

    codes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def by_code(self) -> Counter[str]:
        """All families together."""
        total: Counter[str] = Counter()
        for (_, code), count in self.codes.items():
            total[code] += count
        return total


class Recorder:
    """Keeps what is said in earnest, some of each kind and length."""

    def __init__(self) -> None:
        self.payloads: defaultdict[str, list[bytes]] = defaultdict(list)
        self.tokens: set[str] = set()
        self._lengths: Counter[tuple[str, int]] = Counter()

    async def hear(self, message: Msg) -> None:
        """Keep a message, and the words of its subject."""
        self.tokens.update(message.subject.split("."))
        kind = kind_of(message.subject)
        self._lengths[kind, len(message.data).bit_length()] += 1
        if self._lengths[kind, len(message.data).bit_length()] <= _RECORDED_OF_A_LENGTH:
            self.payloads[kind].append(message.data)

    def write(self, file: Path) -> None:
        """Keep it for another process."""
        file.write_bytes(msgpack.packb({"payloads": self.payloads, "tokens": sorted(self.tokens)}))

    @classmethod
    def read(cls, file: Path) -> Recorder:
        """Read what was kept."""
        recorder, kept = cls(), msgpack.unpackb(file.read_bytes())
        recorder.payloads.update(kept["payloads"])
        recorder.tokens.update(kept["tokens"])
        return recorder


class Trespasser:
    """Somebody with a key, and all the subjects that it opens."""

    def __init__(self, client: Client, families: Sequence[str], recorder: Recorder, chance: random.Random, own: str) -> None:
        self._client = client
        self._families = families
        self._chance = chance
        self._tokens = (*sorted(recorder.tokens), "a" * 300, "é", "x")
        self._frames = HostileFrames(recorder.payloads, chance, own=own, names=(HONEST,))

    async def send(self, frames: int, sent: Sent, *, until: float) -> None:
        """Send frames, some at once, each to a family in turn, until a time of the monotonic clock; note what is answered."""
        waiting = takewhile(lambda _: time.monotonic() < until, range(frames))

        async def one_after_another() -> None:
            for number in waiting:
                family = self._families[number % len(self._families)]
                sent.codes[family, (await self.throw(family, _PATIENCE_SECONDS)).code] += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, frames)):
                group.create_task(one_after_another())

    async def throw(self, family: str, patience: float) -> FrameAnswer:
        """Send one frame to a subject of a family, and wait so many seconds for an answer."""
        try:
            answer = await self._client.request(self._subject(family), self._frames.next(kind_of(family)), timeout=patience)
        except nats.errors.NoRespondersError:
            return FrameAnswer("nobody there")
        except (nats.errors.Error, TimeoutError):
            return FrameAnswer("no answer")
        if (error := error_in(answer.headers or {})) is None:
            return _FULL if family.startswith(OLD_GOAL) and _is_full(answer.data) else FrameAnswer("answered")
        again_after = error.retry_after if isinstance(error, RateLimitedError) else None
        return FrameAnswer(row_of(error).wire_code, again_after or timedelta(0))

    def _subject(self, family: str) -> str:
        return ".".join(self._chance.choice(self._tokens) if token in ("*", ">") else token for token in family.split("."))


@dataclass(frozen=True)
class Stood:
    """How a system stood it.

    Attributes:
        sent: What was answered.
        seconds: How long it took to send all.
        usual: Seconds that honest goals took before.
        after: Seconds that honest goals took afterwards.
        growth: What each process holds by what it held before; 0 for one that has died.
        tracebacks: How many each process has logged.
        log_bytes: What each process has logged since.
    """

    sent: Sent
    seconds: float
    usual: Sequence[float]
    after: Sequence[float]
    growth: Mapping[str, float]
    tracebacks: Mapping[str, int]
    log_bytes: Mapping[str, int]

    def faults(self) -> Iterator[str]:
        """Say what should not be."""
        yield from (f"{name} has died" for name, growth in self.growth.items() if not growth)
        yield from (f"{name} grew {growth:.2f} times" for name, growth in self.growth.items() if growth > _MOST_GROWTH)
        yield from (f"{name} logged {count} tracebacks" for name, count in self.tracebacks.items() if count)
        inside = self.sent.by_code()["internal"]
        if inside:
            yield f"{inside} answers say that a service failed inside"
        usual, after = statistics.median(self.usual), statistics.median(self.after)
        if after > _MOST_TIME * usual:
            yield f"an honest goal takes {after:.2f} s, and took {usual:.2f} s"


async def run(frames: int, seconds: float, seed: int, folder: Path) -> Stood:
    """Start a system, throw the frames at it, for so many seconds at most, and tell how it stood it."""
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(folder, (HONEST, STRANGER)))
        services = [secured.service(name) for name in SERVICES]
        env = {**NO_QUOTAS, "IOA_QUOTA_SENT_BURST": "1000000000"}  # else most frames would not be read
        free = [replace(service, env={**(service.env or {}), **env}) for service in services]
        programs = [*free, secured.agent(HONEST, HONEST, HONEST)]
        processes = await stack.enter_async_context(open_processes(secured, programs))
        user = await stack.enter_async_context(open_user(secured, [HONEST]))
        admin = await stack.enter_async_context(open_intruder(secured, "admin"))
        stranger = await stack.enter_async_context(open_intruder(secured, STRANGER, STRANGER))
        other = await stack.enter_async_context(open_intruder(secured, OTHER_USER))

        recorder = await recorded(admin, user)
        usual = await _goals(user, range(1_000, 1_000 + _GOALS))
        held = {name: machine.resident_bytes(process.pid) for name, process in processes.items()}
        logged = {program.name: _size(secured.fork_server.log_of(program)) for program in programs}

        sent, chance, started = Sent(), random.Random(seed), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for client, families in ((stranger, families_of_agent(STRANGER)), (other, of_user(OTHER_USER).publish)):
                trespasser = Trespasser(client, families, recorder, random.Random(chance.random()), STRANGER)
                group.create_task(trespasser.send(frames // 2, sent, until=started + seconds))
        took = time.monotonic() - started
        await eventually(partial(_waiting, admin), lambda count: not count, within=_DRAIN)
        after = await _goals(user, range(2_000, 2_000 + _GOALS))

        growth = {
            name: 0.0 if process.has_ended else machine.resident_bytes(process.pid) / held[name]
            for name, process in processes.items()
        }
        logs = {program.name: secured.fork_server.log_of(program) for program in programs}
        logged_errors = {name: await asyncio.to_thread(tracebacks, log) for name, log in logs.items()}
        grown = {name: _size(log) - logged[name] for name, log in logs.items()}
    return Stood(sent, took, usual, after, growth, logged_errors, grown)


def families_of_agent(agent: AgentId) -> list[str]:
    """What an agent may publish, but drawing goals that are for anybody: to take those and drop them is another matter."""
    families = of_agent(agent, PoolId(agent)).publish
    return [family for family in families if not family.endswith(f".{WORK}.{ANY_AGENT}")]


async def recorded(admin: Client, user: NatsSystemClient) -> Recorder:
    """Listen to everything while honest goals run, which warms the services up as well."""
    recorder = Recorder()
    listening = await admin.subscribe(f"{ROOT}.>", cb=recorder.hear)
    await admin.flush()
    await _goals(user, range(_WARM_GOALS))
    await listening.unsubscribe()
    return recorder


async def _goals(user: NatsSystemClient, numbers: Iterable[int]) -> list[float]:
    """Run goals one by one and return how many seconds each took.

    Raises:
        AssertionError: One did not come to what it should.
    """
    took = []
    for number in numbers:
        started = time.monotonic()
        async with asyncio.timeout(_DRAIN.total_seconds()):
            result = await user.wait_for_result(await user.launch(GoalOrder(goal=f"What is {number} + {number}?")))
        took.append(time.monotonic() - started)
        assert result.reason is Reason.CONCLUDED and str(2 * number) in result.content, result
    return took


async def _waiting(admin: Client) -> int:
    """How many goals are not given out yet, or not done."""
    states = [(await admin.jetstream().stream_info(stream)).state for stream in (GOALS, WORK)]
    return sum(state.messages for state in states)


def _is_full(answer: bytes) -> bool:
    """Whether JetStream says that it has not stored a message, since there are as many as may be."""
    return b"maximum messages per subject" in answer


def _size(log: Path) -> int:
    return log.stat().st_size


def _tell(stood: Stood) -> None:
    """Print what was tried and what came of it."""
    codes = sorted(stood.sent.by_code().items(), key=lambda item: -item[1])
    print(f"{sum(stood.sent.by_code().values())} frames in {stood.seconds:.0f} s: {', '.join(f'{n} {code}' for code, n in codes)}")
    print(f"\n{'subjects':<58}{'frames':>7}  answers")
    for family in sorted({family for family, _ in stood.sent.codes}):
        mine = {code: count for (sent_to, code), count in stood.sent.codes.items() if sent_to == family}
        print(f"{family:<58}{sum(mine.values()):>7}  {', '.join(f'{count} {code}' for code, count in sorted(mine.items()))}")
    print(f"\n{'process':<20}{'grown to':>9}{'logged':>10}{'tracebacks':>12}")
    for name, growth in stood.growth.items():
        print(f"{name:<20}{growth:>8.0%}{stood.log_bytes[name] / 1_000:>7.0f} kB{stood.tracebacks[name]:>12}")
    usual, after = statistics.median(stood.usual), statistics.median(stood.after)
    print(f"\nan honest goal: {usual:.2f} s before, {after:.2f} s after")


def main() -> None:
    """Run it once; exit with 1 if the system did not stand it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trespass", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=20_000, help="how many to send in all")
    parser.add_argument("--seconds", type=float, default=300, help="for how long to send at most: on a busy machine, fewer")
    parser.add_argument("--seed", type=int, default=None, help="decides what is sent")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        stood = asyncio.run(run(options.frames, options.seconds, seed, Path(folder)))
    _tell(stood)
    faults = list(stood.faults())
    if faults:
        sys.exit(f"did not stand it (seed {seed}): {'; '.join(faults)}")


if __name__ == "__main__":
    main()
