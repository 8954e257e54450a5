"""`ioa up` and `ioa demo`: the whole system in the foreground until it is stopped, and a script that uses it."""

from __future__ import annotations

import ioa.telemetry  # before structlog

# isort: split

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import ioa
from ioa.cli.command import DATA, Data, Port, command
from ioa.cli.output.terminal import Terminal
from ioa.distribution import SERVICES
from ioa.errors import InvalidInputError, MissingExtraError
from ioa.foreign_text import continued
from ioa.hosting.configured_model import ask_model, model_of
from ioa.local.local_system import open_embedded_system
from ioa.local.pool import read_pool
from ioa.runtime.known_settings import LOOPBACK
from ioa.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from ioa.adapters.openai.openai_chat import ModelSettings

up_app, demo_app = typer.Typer(), typer.Typer()


@command(up_app)
async def up(
    terminal: Terminal,
    *,
    data: Data = DATA,
    port: Port = 4222,
    pool: Path | None = None,
    metrics: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
    allow_code: bool = False,
    web: bool = False,
    web_port: Port = 4280,
) -> None:
    """Run the whole system in the foreground.

    Prints one line, `ready nats://…`, when every part answers. SIGTERM or Ctrl-C ends it in good order. Started again on the same
    folder, it continues with the open goals. Only users of this machine that can read the folder can connect.

    Args:
        port: Where NATS listens; 0 takes a free port.
        pool (FILE): A pool file: the agents to run.
        metrics (PORT): Serve the services' metrics on this port of 127.0.0.1 (0: a free port), the agents' on free ports.
        web: Let programs in by HTTP, on this machine.
        web_port: The port for that; 0 takes a free one.
    """
    if web and find_spec("uvicorn") is None:
        raise MissingExtraError.of("The server for HTTP", "gateway")
    agents = await asyncio.to_thread(read_pool, pool, os.environ, allow_code=allow_code)
    model, number = model_of(os.environ), sum(agent.replicas for agent in agents.agents)
    configure_logs("warning", "console")
    counted = f"{number or 'no'} agent{'' if number == 1 else 's'}"
    terminal.note(f"starting {len(SERVICES)} services and {counted}; data in {data}, logs in {data / 'logs'}")
    if agents.left_out:
        terminal.note(f"not running: {'; '.join(agents.left_out)}")
    opened = open_embedded_system(data, port or None, agents, metrics, web_port if web else None)
    with suppress(asyncio.CancelledError):  # SIGINT and SIGTERM end the command in good order
        async with opened as system:
            page, http = "", f"http://{LOOPBACK}:{system.http_port}"
            if system.http_port:
                from ioa.cli.http_keys import login_link

                page = await login_link(system.nats("ioa-up"), f"{http}/")
            if terminal.as_json:
                served: dict[str, object] = {"metrics": dict(system.metrics)} if system.metrics else {}
                served |= {"http": f"{http}/v1", "page": page} if page else {}
                terminal.line("ready", url=system.url, data=str(data), pids=dict(system.pids), **served)
            terminal.result.print(f"ready {system.url}", soft_wrap=True)
            where = "" if data == DATA else f"IOA_DATA={data} "
            launch, join = f'`{where}ioa run "GOAL"` launches a goal', f"`{where}ioa agent run FILE.py:agent` joins an agent"
            terminal.note(f"{launch if number else join}, Ctrl-C stops the system")
            for name, url in system.metrics.items():
                terminal.note(f"metrics of {name} at {url}")
            if page:
                terminal.note(f"the web page: {page}")
                terminal.note("The link lets one browser in, once, within an hour; `ioa keys create --name NAME` makes a key.")
            await report_model(terminal, model)
            try:
                await asyncio.Event().wait()
            finally:
                terminal.note("stopping …")
    if terminal.as_json:
        terminal.line("stopped")


async def report_model(terminal: Terminal, model: ModelSettings | None) -> None:
    """Report which model decides for agents that have none of their own."""
    from ioa.cli.doctor import model_finding  # the system is ready before this import

    finding = model_finding(None if model is None else await ask_model(model))
    terminal.progress.print(continued(f"model: {finding.message} {finding.hint}".rstrip()))


def examples() -> Path:
    """Return the folder of the examples: data of the package, or the repository's where it is used from its source."""
    packaged = Path(str(files(ioa))) / "examples"
    return packaged if packaged.is_dir() else Path(ioa.__file__).parents[2] / "examples"


@command(demo_app)
def demo() -> None:
    """Run the whole system here and real goals on a real file, show them live, and stop everything.

    Their files are in `out`. Requires the extra `laptop`.
    """
    bash = shutil.which("bash")
    if bash is None:
        raise InvalidInputError("The demonstration is a script for bash, and there is none.", hint="Install bash.")
    for module in ("onnxruntime", "matplotlib"):  # of discovery and of the examples
        if find_spec(module) is None:
            raise MissingExtraError.of(module, "laptop")
    # The script calls the command of this environment.
    path = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))
    os.execve(bash, [bash, str(examples() / "demo.sh")], {**os.environ, "PATH": path})  # noqa: S606 - a script of our own
