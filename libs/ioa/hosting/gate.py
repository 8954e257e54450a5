"""The gate of a nats-server, which runs beside it: `python -m ioa.hosting.gate`, or with `--once` before the server starts.

nats-server keeps nobody out but by its configuration. So it includes not the authorization itself but what its gate writes: the
same, without those whom the registry keeps out for a flood. Rules that hold here:

- The gate takes away and gives back what the authorization holds, and adds nobody but itself. Its own key it makes, and keeps
  beside what it writes: who may write there lets in whom he likes anyway.
- It reads no more than whom registries keep out, and who is connected, and makes its server read the file anew. While registries
  are away nobody is kept out; while the gate is away the server goes on with what it read last.
- What the server does not count its kernel does: the gate, which stands beside it, tells the registry of it.
- The authorization may change at any time, and counts within ten seconds. A server that reads its configuration anew loses answers
  that are on their way, which are asked for again after seconds: so it does that no more often, however many flood.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import structlog
from pydantic import Field

from ioa.adapters.kernel_sockets import KernelSockets
from ioa.adapters.nats.authorization import at_the_gate, roster_of
from ioa.adapters.nats.connection import Connection, NatsSettings, open_connection
from ioa.adapters.nats.counted import NatsCountingServer
from ioa.adapters.nats.kept_out import NatsKeptOut
from ioa.adapters.nats.server_control import reload_server
from ioa.adapters.nkey_seeds import create_seed, public_key_of, read_key
from ioa.adapters.system_folder import make_private, write_private
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.uncounted_watch import UncountedWatch
from ioa.runtime.process import StopSignal, background, run_process
from ioa.runtime.settings import ProcessSettings
from ioa.runtime.watched_file import WatchedFile

_LOOKS_EVERY_SECONDS = 1.0
_RELOADS_EVERY_SECONDS = 10.0
_SEED = "gate-seed"
_HINT = (
    "IOA_GATE_AUTHORIZATION names what `ioa credentials create` writes; IOA_GATE_LET_IN what nats-server includes instead of it."
)

_log = structlog.get_logger(__name__)


class GateSettings(ProcessSettings):
    """What the gate of a nats-server is told besides what every process is; `nats_url` names this one server."""

    gate_authorization: Path = Field(
        default=Path("authorization.conf"), description="whom the gate lets in, but for floods: what `ioa credentials` writes"
    )
    gate_let_in: Path = Field(
        default=Path("let-in.conf"), description="what the gate writes, and nats-server includes; the folder is the gate's alone"
    )


class Gate:
    """The file that a server includes, and the key by which the gate is let in.

    Raises:
        InvalidInputError: The authorization cannot be read, or the folder is open to others or cannot be written.
    """

    def __init__(self, authorization: Path, let_in: Path) -> None:
        make_private(let_in.parent)
        self._let_in = let_in
        self._authorization = WatchedFile(authorization, _checked, _HINT)
        self.seed = let_in.with_name(_SEED)
        if not self.seed.exists():
            _write(self.seed, create_seed())
        self._key = public_key_of(read_key(str(self.seed)).seed)
        self._written: tuple[str, frozenset[str]] | None = None

    async def write(self, kept_out: frozenset[str]) -> bool:
        """Write whom the server is to let in now; whether anything has changed since this was called last."""
        of = (await self._authorization.said(), kept_out)
        if of == self._written:
            return False
        await asyncio.to_thread(_write, self._let_in, at_the_gate(of[0], self._key, kept_out))
        self._written = of
        return True


def _checked(rendered: str) -> str:
    roster_of(rendered)
    return rendered


def _write(path: Path, text: str) -> None:
    try:
        write_private(path, text.encode())
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror}.", hint=_HINT) from None


async def serve(settings: GateSettings, stop: StopSignal) -> None:
    """Keep the file, and have the server read it whenever it changes, until `stop` is set."""
    gate = await asyncio.to_thread(Gate, settings.gate_authorization, settings.gate_let_in)
    kept_out = NatsKeptOut(time.monotonic)
    await gate.write(frozenset())
    own = NatsSettings(
        settings.nats_url,
        "ioa-gate",
        seed=str(gate.seed),
        ca=settings.nats_ca,
        certificate=settings.nats_certificate,
        key=settings.nats_key,
    )
    async with open_connection(own) as client, kept_out.hearing(client):
        uncounted = UncountedWatch(KernelSockets(), NatsCountingServer(client))
        async with background(_keep(gate, kept_out, client), uncounted.follow()):
            await stop.wait()


async def _keep(gate: Gate, kept_out: NatsKeptOut, client: Connection) -> None:
    to_read, reloaded = True, float("-inf")
    while True:
        await kept_out.heard(_LOOKS_EVERY_SECONDS)
        if time.monotonic() < reloaded + _RELOADS_EVERY_SECONDS:
            continue
        names = kept_out.names()
        try:
            to_read = await gate.write(names) or to_read
            if to_read:
                reloaded = time.monotonic()
                await reload_server(client)
                _log.info("server_reloaded", kept_out=sorted(names))
            to_read = False
        except UnavailableError as error:
            _log.error("server_not_told", error=error.message)
        except InvalidInputError as error:
            to_read = False
            _log.error("server_not_reloaded", error=error.message)


async def _once(settings: GateSettings, _stop: StopSignal) -> None:
    gate = await asyncio.to_thread(Gate, settings.gate_authorization, settings.gate_let_in)
    await gate.write(frozenset())


if __name__ == "__main__":
    run_process(GateSettings, _once if "--once" in sys.argv[1:] else serve, name="ioa-gate")
