"""The command `ioa`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.embedded import open_embedded_system
from ioa.cli.pool import Pool, read_pool
from ioa.cli.worker import host, load_agent, serve_hosted

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
agent_app = typer.Typer(no_args_is_help=True)
app.add_typer(agent_app, name="agent")


@agent_app.command("run")
def agent_run(targets: list[str], replica: Annotated[int | None, typer.Option()] = None) -> None:
    """Join agents from Python files to the running system."""
    serve_hosted([host(load_agent(target), replica) for target in targets])


@app.command()
def up(data: Path = Path(".ioa"), port: int = 4222, pool: Annotated[Path | None, typer.Option()] = None) -> None:
    """Run the whole system in the foreground."""

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with open_embedded_system(data, port, read_pool(pool) if pool else Pool()) as system:
            print(f"ready {system.url}", flush=True)
            await stop.wait()

    asyncio.run(main())
