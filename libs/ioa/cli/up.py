"""`ioa up`: the whole system in the foreground, until it is told to stop."""

from __future__ import annotations

import ioa.telemetry  # noqa: F401  # before structlog

# isort: split

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioa.adapters.system_folder import make_private, noted_url
from ioa.cli.command import command, run_to_end
from ioa.cli.options import DATA, WEB_PORT, AllowCode, Data
from ioa.cli.terminal import Terminal
from ioa.errors import MissingExtraError
from ioa.foreign_text import continued
from ioa.hosting.configured_model import ask_model, model_of
from ioa.local.pool import Pool, read_pool
from ioa.local.system import EmbeddedSystem, open_embedded_system
from ioa.runtime.known_settings import LOOPBACK
from ioa.runtime.service_spec import service_specs
from ioa.telemetry.logs import configure_logs

app = typer.Typer()

if TYPE_CHECKING:
    from ioa.adapters.openai.chat import ModelSettings

GUESTS = "credentials"
"""Where in the folder of a system lies what lets in third parties."""


async def run_system(
    data: Path,
    port: int,
    pool_file: Path | None,
    metrics: int | None,
    terminal: Terminal,
    *,
    allow_code: bool,
    callout: bool,
    web: int | None,
) -> None:
    """Start everything, print `ready` and where, and serve until cancelled.

    Args:
        data: Holds all that is durable; with the same folder the system carries on with what was open.
        port: Where NATS listens; 0 picks a free port.
        pool_file: The agents to run; None runs none.
        metrics: Port of the services' metrics on this machine, 0: a free port. Each process of agents takes a free port. None:
            no process serves metrics.
        terminal: Where `ready` and the hints go.
        allow_code: Whether agents may join that run code which others write.
        callout: Whether third parties are let in, by tokens.
        web: The port on this machine where HTTP is served; 0 picks a free one, None serves none.

    Raises:
        MissingExtraError: What that needs is not installed.
    """
    if web is not None and find_spec("uvicorn") is None:
        raise MissingExtraError.of("The server for HTTP", "gateway")
    pool = await asyncio.to_thread(read_pool, pool_file, os.environ, allow_code=allow_code)
    model = model_of(os.environ)
    configure_logs("warning", "console")
    terminal.note(f"starting {len(service_specs())} services and {count(pool)}; data in {data}, logs in {data / 'logs'}")
    if pool.left_out:
        terminal.note(f"not running: {'; '.join(pool.left_out)}")
    guests = await asyncio.to_thread(prepare_callout, data) if callout else None
    async with open_embedded_system(data, port or None, pool, metrics, guests, web) as system:
        link = await _link(system) if system.http_port else ""
        with noted_url(data, system.url):
            if terminal.as_json:
                served: dict[str, object] = {"metrics": dict(system.metrics)} if system.metrics else {}
                served |= {"http": _http_url(system.http_port), "page": link} if system.http_port else {}
                terminal.line("ready", url=system.url, data=str(data), pids=dict(system.pids), **served)
            else:
                terminal.result.print(f"ready {system.url}", soft_wrap=True)
                _hint(terminal, data, pool)
                for name, url in system.metrics.items():
                    terminal.note(f"metrics of {name} at {url}")
                if system.http_port:
                    terminal.note(f"the web page: {link}")
                    terminal.note("The link lets one browser in, once, within an hour; `ioa keys create --name NAME` makes a key.")
            await tell_brain(terminal, model)
            try:
                await asyncio.Event().wait()
            finally:
                terminal.note("stopping …")
    if terminal.as_json:
        terminal.line("stopped", url=system.url)


def prepare_callout(data: Path) -> Path:
    """Make what a system on this machine needs to let in third parties, and return the folder where it is.

    Raises:
        InvalidInputError: Others may enter the folder of the system.
        MissingExtraError: What checks tokens is not installed.
    """
    if find_spec("jwt") is None:
        raise MissingExtraError.of("The library for tokens", "authcallout")
    from ioa.cli.credentials import CALLOUT, NATS, CredentialFolder
    from ioa.hosting.credentials import make_callout, write_changes, written_roster

    make_private(data)
    with CredentialFolder(data / GUESTS).open(is_new=True) as (store, roster):
        callout, _ = make_callout(store, CALLOUT)
        write_changes(store, NATS, written_roster(roster.model_copy(update={"callout": callout})))
    return data / GUESTS


async def _link(system: EmbeddedSystem) -> str:
    from ioa.cli.http_keys import login_link

    return await login_link(system.nats("ioa-up"), f"http://{LOOPBACK}:{system.http_port}/")


def _http_url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}/v1"


async def tell_brain(terminal: Terminal, model: ModelSettings | None) -> None:
    """Say what decides for the agents, unless they are told otherwise one by one."""
    if model is None:
        terminal.note("brain: rules (no model set)")
        return
    standing = await ask_model(model)
    if standing.failure is None:
        terminal.note(f"brain: {standing.model} at {standing.host}, which answered in {standing.seconds:.1f} s")
    else:
        failed = continued(str(standing.failure))
        terminal.progress.tell(f"brain: {standing.model} at {standing.host}, which does not serve: {failed}")


def count(pool: Pool) -> str:
    """Say how many agents a pool has."""
    agents = sum(agent.replicas for agent in pool.agents)
    return "no agents" if not agents else f"{agents} agent{'s' if agents > 1 else ''}"


def _hint(terminal: Terminal, data: Path, pool: Pool) -> None:
    where = "" if data == DATA else f"IOA_DATA={data} "
    if pool.agents:
        terminal.note(f'`{where}ioa run "GOAL"` launches a goal, Ctrl-C stops the system')
    else:
        terminal.note(f"`{where}ioa agent run FILE.py:agent` joins an agent, Ctrl-C stops the system")


@command(app)
def up(
    terminal: Terminal,
    data: Data = DATA,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where NATS listens; 0 takes a free port.")] = 4222,
    pool: Annotated[Path | None, typer.Option(metavar="FILE", help="A pool file: the agents to run.")] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve the services' metrics on this port of 127.0.0.1 (0: a free port), the agents' on free ports.",
        ),
    ] = None,
    callout: Annotated[
        bool, typer.Option("--callout", help="Accept clients with tokens of IOA_CALLOUT_ISSUER for IOA_CALLOUT_AUDIENCE.")
    ] = False,
    allow_code: AllowCode = False,
    web: Annotated[bool, typer.Option("--web", help="Let programs in by HTTP, on this machine.")] = False,
    web_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port for that; 0 takes a free one.")] = WEB_PORT,
) -> None:
    """Run the whole system in the foreground.

    Prints one line, `ready nats://…`, when every part answers. SIGTERM or Ctrl-C ends it in good order. Started again on the same
    folder, it continues with the open goals. Only users of this machine that can read the folder can connect.
    """
    try:
        served = web_port if web else None
        run_to_end(run_system(data, port, pool, metrics, terminal, allow_code=allow_code, callout=callout, web=served))
    except KeyboardInterrupt:
        if terminal.as_json:
            terminal.line("stopped")
