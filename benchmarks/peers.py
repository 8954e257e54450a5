"""The group chats of other frameworks with silent agents, each in its own environment with the newest packages of PyPI.

AutoGen's `RoundRobinGroupChat` runs in one process and stores nothing. Agent Framework's group chat writes a checkpoint file after
every superstep, and LangGraph writes a checkpoint to SQLite, so that a conversation can be resumed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, temporary_folder

PEERS = {
    "autogen_chat": ("AutoGen RoundRobinGroupChat, in process, not durable", ("autogen-agentchat",)),
    "agent_framework_chat": (
        "Agent Framework group chat, file checkpoints",
        ("agent-framework-core", "agent-framework-orchestrations"),
    ),
    "langgraph_chat": ("LangGraph, a ring of nodes, checkpoints in SQLite", ("langgraph", "langgraph-checkpoint-sqlite")),
}
"""Title and packages of each script in `peer_scripts`."""

_LONGEST_SECONDS = 240


def measure_peers(members: int, turns: Sequence[int]) -> None:
    """Print the cost of a turn in other frameworks; a framework that cannot be installed is left out with the reason."""
    table = Table("framework", "version", "turns", "CPU-ms per turn", "turns/s", "CPU-ms of the last tenth", "on disk", "load")
    for script, (title, packages) in PEERS.items():
        with temporary_folder() as folder:
            if failure := install(folder, packages):
                machine.console.print(f"{title}: left out, since {packages[0]} cannot be installed: {failure}")
                continue
            for number in turns:
                note(f"{title}, {number} turns")
                table.add_row(title, *_measure(folder, script, packages[0], members, number), machine.load())
    machine.console.print(table)


def install(folder: Path, packages: Sequence[str]) -> str:
    """Create an environment; return the error, or an empty text."""
    python = str(folder / "bin" / "python")
    for command in ([sys.executable, "-m", "venv", str(folder)], [python, "-m", "pip", "install", "--quiet", *packages]):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            return (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
    return ""


def _measure(folder: Path, script: str, package: str, members: int, turns: int) -> list[str]:
    """Run a script of `peer_scripts` in its environment and read the line of JSON it prints."""
    source = Path(__file__).with_name("peer_scripts") / f"{script}.py"
    command = [
        str(folder / "bin" / "python"),
        "-W",
        "ignore",
        str(source),
        package,
        str(members),
        str(turns),
        str(folder / "state"),
    ]
    shutil.rmtree(folder / "state", ignore_errors=True)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        return ["", f"{turns:,}", f"not done in {_LONGEST_SECONDS} s", "", "", ""]
    except subprocess.CalledProcessError as error:
        return ["", f"{turns:,}", (error.stderr.strip().splitlines() or ["failed"])[-1][:80], "", "", ""]
    figures = json.loads(ended.stdout.splitlines()[-1])
    assert figures["turns"] >= turns, figures
    return [
        figures["version"],
        f"{turns:,}",
        f"{figures['cpu'] / figures['turns'] * 1000:.2f}",
        f"{figures['turns'] / figures['seconds']:,.0f}",
        f"{figures['late_cpu'] * 1000:.2f}",
        f"{sum(file.stat().st_size for file in (folder / 'state').rglob('*') if file.is_file()) / 1e6:.1f} MB",
    ]
