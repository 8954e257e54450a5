"""Have a stranger's key and a user's do all that they may: a process of its own, which `benchmarks.soak` starts.

    python -m benchmarks.soak_senders CREDENTIALS RECORDED SENT SEED

They send what `RECORDED` says was said in earnest, varied, until they are told to stop, and write into `SENT`, each second, what
was answered. In earnest such have machines of their own: here they take of the processor what the system leaves, and it has as much
of the machine as it would then.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.trespass import HONEST, OTHER_USER, STRANGER, Recorder, Trespasser, families_of_agent
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.permissions import of_user
from ioa.beside import beside
from ioa.protocol.ids import AgentId
from ioa.protocol.subjects import CALLOUT_STATUS, goal_to
from ioa.runtime.process import loop_factory

_NICE = 10
_SENT_PER_SECOND = 900.0
"""What one key sends: a little less than the 1,000 messages a second that it may."""
_COUNT_AS_MANY = ("$", CALLOUT_STATUS)
"""How subjects begin where one message counts as up to 20,000, by what it has the server do: `benchmarks.floods` sends there."""
_ADDRESSEES = HONEST, AgentId("nobody")
"""Whom the user's goals are for. For each of them so many may wait as nats-server keeps of one user's: who makes up others without
end fills what all goals wait in, and is put off for that."""
_AT_ONCE = 4
"""How many frames of a family wait for their answers."""
_ANSWER_SECONDS = 0.5
_TOLD_EVERY_SECONDS = 1.0


class Pace:
    """Has whoever waits here go on so often that no more than so many messages a second are sent."""

    def __init__(self, per_second: float) -> None:
        self._each = 1 / per_second
        self._next = 0.0

    async def wait(self) -> None:
        """Wait until a message may be sent."""
        now = asyncio.get_running_loop().time()
        at = max(self._next, now)
        self._next = at + self._each
        await asyncio.sleep(at - now)


def _write_sent(sent: Counter[str], file: Path) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(sent), encoding="utf-8")
    new.replace(file)


async def run(credentials: Path, recorded: Path, told: Path, seed: int) -> None:
    """Send until this process is told to stop."""
    stop, recorder, chance, sent = asyncio.Event(), Recorder.read(recorded), random.Random(seed), Counter[str]()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    of_stranger = tuple(_families(families_of_agent(STRANGER)))
    of_other = tuple(_families(of_user(OTHER_USER).publish))
    async with AsyncExitStack() as stack:
        for name, key, families in ((STRANGER, STRANGER, of_stranger), (OTHER_USER, "seed", of_other)):
            settings = NatsSettings(os.environ["IOA_NATS_URL"], name, seed=str(credentials / name / key), asks_to_read=True)
            client = await stack.enter_async_context(open_connection(settings))
            trespasser = Trespasser(client, families, recorder, random.Random(chance.random()), STRANGER)
            await stack.enter_async_context(beside(_at_every_quota(trespasser, families, sent)))
        while not stop.is_set():
            await asyncio.to_thread(_write_sent, sent, told)
            try:
                async with asyncio.timeout(_TOLD_EVERY_SECONDS):
                    await stop.wait()
            except TimeoutError:
                pass
    await asyncio.to_thread(_write_sent, sent, told)


def _families(opened: Sequence[str]) -> Iterator[str]:
    """Return to what is sent, of what may be published to."""
    for family in opened:
        if family == goal_to(OTHER_USER, AgentId("*")):
            yield from (goal_to(OTHER_USER, addressee) for addressee in _ADDRESSEES)
        elif not family.startswith(_COUNT_AS_MANY):
            yield family


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


def main() -> None:
    """Do it, with the last say at each core."""
    os.nice(_NICE)
    credentials, recorded, told, seed = sys.argv[1:]
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run(Path(credentials), Path(recorded), Path(told), int(seed)))


if __name__ == "__main__":
    main()
