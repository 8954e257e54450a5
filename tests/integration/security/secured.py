"""A system as roles: nats-server lets in only whom the rendered authorization names; every part has a seed of its own."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key, sign_with
from ioa.cli.credentials import authorization_file, create
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client as SystemClient
from ioa.client.client import open_system
from ioa.errors import UnavailableError
from ioa.local.local_system import Program
from tests.rig.deadline import eventually
from tests.rig.forks import ChildProcess, ForkServer
from tests.rig.nats_server import ignore_refused_subscriptions

EXAMPLES = Path(__file__).parents[3] / "examples"
SERVICES = ("registry", "discovery", "groups", "router")
ONE_OF_EACH: Mapping[str, Sequence[str]] = {"observer": ["observer"], "admin": ["admin"], "auditor": ["auditor"]}

_PATIENCE = timedelta(seconds=60)
_STOP_GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Secured:
    """A nats-server with authorization, where everybody's seed is, where processes log, and what services are told besides."""

    server: NatsServer
    folder: Path
    fork_server: ForkServer
    logs: Path
    told: Mapping[str, str] = field(default_factory=dict)

    def settings(self, name: str, key: str = "seed") -> NatsSettings:
        """How somebody connects."""
        return NatsSettings(self.server.url, name, seed=str(self.folder / name / key))

    def service(self, name: str) -> Program:
        """A service as a process."""
        env = {"IOA_NATS_SEED": str(self.folder / name / "seed"), "IOA_VECTORS_FOLDER": str(self.folder.with_name("index"))}
        return Program(f"ioa_{name}", f"ioa_{name}", (), {**env, **self.told})

    def agent(self, file: str, pool: str, key: str, at: Path = EXAMPLES / "agents") -> Program:
        """An agent of a folder as a process: of its pool, or, with a number at the end of its key, a replica."""
        env = {"IOA_NATS_SEED": str(self.folder / pool / key), "IOA_AGENT_DATA": str(self.folder.with_name("agents"))}
        if key != pool:
            env["IOA_REPLICA"] = key
        return Program(key, "ioa.hosting", (f"{at}/{file}.py:agent",), env)

    @property
    def pid_file(self) -> Path:
        """Where nats-server's process id stands, for who has it reload."""
        return self.folder.with_name("nats.pid")

    def log(self) -> str:
        """What nats-server wrote."""
        return self.server.log_path.read_text(encoding="utf-8")


@asynccontextmanager
async def open_secured(  # all that there is
    folder: Path,
    pools: Sequence[str],
    *,
    callout: bool = False,
    users: Sequence[str] = ("user", "eve"),
    gateways: Sequence[str] = (),
) -> AsyncIterator[Secured]:
    """Run a nats-server with credentials for services, pools such as `writer:2`, users, gateways, and one of each other role."""
    credentials = folder / "credentials"
    names: dict[str, Any] = {**ONE_OF_EACH, "user": users, "gateway": gateways}
    edit = partial(create, Terminal(as_json=True), out=credentials, pool=pools, callout=callout, **names)
    await asyncio.to_thread(edit)
    included = authorization_file(credentials)
    authorization = await asyncio.to_thread(included.read_text)
    async with open_nats_server(folder / "nats", None, authorization=authorization) as server:
        secured = secured_by(server, credentials, folder / "logs")
        await asyncio.to_thread(include, secured, included)
        yield secured


def secured_by(server: NatsServer, folder: Path, logs: Path) -> Secured:
    """Say how those connect to a server whose seeds are in a folder."""
    return Secured(server, folder, ForkServer(logs, {"IOA_NATS_URL": server.url}), logs)


def include(secured: Secured, authorization: Path) -> None:
    """Have the server's configuration include who is let in, as those do that operators write, for the next time it reloads."""
    configuration = secured.server.log_path.with_name("nats-server.conf")
    theirs = json.loads(authorization.read_text())
    written = {key: value for key, value in json.loads(configuration.read_text()).items() if key not in theirs}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in written.items()]
    included = os.path.relpath(authorization, configuration.parent)
    configuration.write_text("\n".join([*lines, f"include '{included}'", ""]))
    secured.pid_file.write_text(str(secured.server.pid))


@asynccontextmanager
async def open_processes(secured: Secured, programs: Iterable[Program]) -> AsyncIterator[dict[str, ChildProcess]]:
    """Start programs, and yield their processes by name."""
    await asyncio.to_thread(secured.logs.mkdir, exist_ok=True)
    processes: dict[str, ChildProcess] = {}
    async with AsyncExitStack() as stack:
        for program in programs:
            processes[program.name] = await secured.fork_server.start(program)
            stack.push_async_callback(processes[program.name].stop, _STOP_GRACE_SECONDS)
        yield processes


@asynccontextmanager
async def open_user(secured: Secured, agents: Collection[str]) -> AsyncIterator[SystemClient]:
    """Yield the system as the user sees it when all of these agents are found."""
    async with open_system(secured.settings("user"), patience=_PATIENCE) as system:

        async def found() -> set[str]:
            try:
                online: set[str] = {status.card.agent_id for status in await system.agents(online_only=True)}
                return online if (await system.index_status()).cards >= len(agents) else set()
            except UnavailableError:
                return set()

        await eventually(found, set(agents).issubset, within=_PATIENCE)
        yield system


@asynccontextmanager
async def open_running(secured: Secured, agents: Mapping[str, Program]) -> AsyncIterator[SystemClient]:
    """Start the services and agents, and yield the system as the user sees it when everybody is found."""
    services = [secured.service(name) for name in SERVICES]
    async with open_processes(secured, [*services, *agents.values()]), open_user(secured, agents) as system:
        yield system


@asynccontextmanager
async def open_intruder(secured: Secured, name: str, key: str = "seed") -> AsyncIterator[Client]:
    """Connect with somebody's credentials, to do what they should not."""
    async with open_connection(secured.settings(name, key), patience=_PATIENCE) as client:
        await ignore_refused_subscriptions(client)
        yield client


@asynccontextmanager
async def open_wire(secured: Secured, name: str, key: str = "seed") -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    """Connect with somebody's credentials, to write the commands of the wire by hand."""
    seed, address = read_key(str(secured.folder / name / key)), urlsplit(secured.server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        told = json.loads((await reader.readline()).partition(b" ")[2])
        signature = base64.urlsafe_b64encode(sign_with(seed.seed, told["nonce"].encode()))
        who = {"nkey": public_key_of(seed.seed), "sig": signature.decode().rstrip("="), "protocol": 1, "headers": True}
        writer.write(b"CONNECT %s\r\n" % json.dumps({**who, "verbose": False, "pedantic": False, "no_responders": True}).encode())
        yield reader, writer
    finally:
        writer.transport.abort()
