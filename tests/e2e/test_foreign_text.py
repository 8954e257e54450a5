"""Every command's output on a system whose agents and users write what a terminal would obey."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from types import SimpleNamespace

import nats
import pytest

from ioa.cli.main import command_names, load_command
from ioa.foreign_text import shown
from tests.e2e.command_line import TIMEOUT_SECONDS, CommandLine, Running, running_system
from tests.rig.forks import run_on_terminal

HOSTILE = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2A\x1b[2K\x9b31m\x9d0;owned\x9c\u202egpj.exe\u2066\x7f\r\x08 "
"""Writes the clipboard, moves the cursor, erases, sets colour and title, and turns the reading order round."""

_OUR_CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\r")
"""Control codes of the command itself on a terminal: colours, and the footer that is drawn again."""

AGENTS = f"""
from ioa import Agent

HOSTILE = {HOSTILE!r}

evil = Agent("evil", description="Greets people " + HOSTILE, examples=["greet Ada " + HOSTILE], may_team_up=False)


@evil.task
def greet(task, ctx):
    ctx.progress("halfway " + HOSTILE, 0.5)
    ctx.artifact("file.txt", "hello")
    return "Hello! " + HOSTILE + "and good bye"


broken = Agent("broken", description="Breaks vases " + HOSTILE, examples=["break a vase", "smash it"], may_team_up=False)


@broken.task
def smash(task):
    raise ValueError("no vase " + HOSTILE)


lead = Agent("lead", description="Leads", examples=["lead the work", "coordinate"])


@lead.task
def never(task):
    return "nothing"
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A folder with the hostile agents, and one whose file does not load."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
    (folder / "unloadable.py").write_text(f"raise ValueError({HOSTILE!r})\n", encoding="utf-8")
    names = ("evil", "broken", "lead")
    (folder / "pool.toml").write_text("".join(f'[[agents]]\ntarget = "agents.py:{name}"\n' for name in names), encoding="utf-8")
    (folder / "bad.toml").write_text('[[agents]]\ntarget = "unloadable.py:agent"\n', encoding="utf-8")
    return CommandLine(folder)


@pytest.fixture(scope="module")
def system(command: CommandLine) -> Iterator[Running]:
    """A system with goals that were done and failed, and dead letters, all of them hostile."""
    with running_system(command, "--pool", "pool.toml") as running:
        asyncio.run(_publish(running.private_url))
        for goal_id in ("done", "failed"):
            command.run("goal", "watch", goal_id)
        yield running


async def _publish(url: str) -> None:
    done = {
        "goal_id": "done",
        "goal": "Greet Ada\x9b\u202e",
        "agent": "evil",
        "inputs": [{"name": f"ada{HOSTILE}.txt", "text": "x"}],
    }
    failed = {"goal_id": "failed", "goal": f"Break a vase {HOSTILE}", "agent": "broken"}
    async with await nats.connect(url) as client:
        js = client.jetstream()
        for order in (done, failed, *({"goal": f"x{HOSTILE}", f"no field{HOSTILE}": number} for number in range(2))):
            await js.publish("ioa.v1.goal.local", json.dumps(order).encode())


COMMANDS: dict[str, list[str]] = {
    "up": ["--data", "other", "--port", "0", "--pool", "bad.toml"],
    "run": [f"Greet Ada {HOSTILE}", "--agent", "evil", "--out", "out"],
    "goals": [],
    "groups": ["done"],
    "prune": ["--dry-run"],
    "doctor": ["--probe"],
    "dead": ["1"],
    "agent run": ["unloadable.py:agent"],
    "agent adopt": ["command", "--id", f"x{HOSTILE}", "--description", "Runs", "--", "prog"],
    "agents": [],
    "agents search": [f"greet Ada {HOSTILE}", "say hello", "--why"],
    "agents remove": [f"x{HOSTILE}"],
    "credentials create": ["--out", f"creds{HOSTILE}", "--user", "ada"],
    "credentials list": ["--out", f"creds{HOSTILE}"],
    "credentials rotate": [f"ada{HOSTILE}", "--out", f"creds{HOSTILE}"],
    "credentials render": ["--out", f"nowhere{HOSTILE}"],
    "credentials revoke": [f"ada{HOSTILE}", "--out", f"creds{HOSTILE}"],
    "audit": [],
    "keys create": ["--name", f"ci{HOSTILE}"],
    "keys list": [],
    "keys revoke": [f"ci{HOSTILE}"],
    "waiting": [],
    "answer": [f"x{HOSTILE}.1", f"Yes {HOSTILE}"],
    "team check": [f"team{HOSTILE}.toml"],
    "team draw": [f"team{HOSTILE}.toml"],
    "team try": [f"team{HOSTILE}.toml"],
    "team plan": [f"Count the words in a.txt, and then draw a chart '{HOSTILE}'"],
    "team run": [f"team{HOSTILE}.toml"],
    "team put": [f"team{HOSTILE}.toml"],
    "team show": [f"x{HOSTILE}"],
    "rerun": [f"x{HOSTILE}", "--at", "1", "x"],
    "goal show": ["done"],
    "goal watch": ["done", "--out", "watched"],
    "goal cancel": ["failed", "--why", HOSTILE],
    "trace export": [f"x{HOSTILE}"],
}
"""Each command with what makes it show something hostile."""

MADE_OF_OTHERS = {"demo"}

SHOWS_NOTHING_FOREIGN = {
    "waiting",
    "team plan",
    "keys create",
    "prune",
    "goal cancel",
    "audit",
    "credentials list",
}


def test_no_command_is_left_out() -> None:
    """A new command has to be tried here, too."""

    def names(group: object, prefix: str = "") -> Iterator[str]:
        for name, one in getattr(group, "commands", {}).items():
            if not getattr(one, "commands", None) or getattr(one, "invoke_without_command", False):
                yield f"{prefix}{name}"
            yield from names(one, f"{prefix}{name} ")

    commands = SimpleNamespace(commands={name: load_command(name) for name in command_names()})
    assert set(names(commands)) - MADE_OF_OTHERS == set(COMMANDS)


def _arguments(name: str) -> list[str]:
    return [*name.split(), *COMMANDS[name]]


def _on_terminal(command: CommandLine, *arguments: str) -> str:
    """What a terminal gets, without what the command draws with."""
    env = {**command.environment, "TERM": "xterm-256color", "COLUMNS": "200"}
    written = run_on_terminal("ioa.cli", arguments, folder=command.folder, env=env, timeout_seconds=TIMEOUT_SECONDS)
    return _OUR_CODES.sub("", written.decode())


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_nothing_foreign_reaches_the_terminal(name: str, system: Running, command: CommandLine) -> None:
    """The output of a command contains no control code of a text, and the text in a visible form."""
    written = _on_terminal(command, *_arguments(name))
    assert written == shown(written)
    assert name in SHOWS_NOTHING_FOREIGN or any(sign in written for sign in ("]52;c;", "\ufffd")), written


def test_programs_get_what_was_written(system: Running, command: CommandLine) -> None:
    """JSON holds the text as it was, escaped."""
    done = command.run("goal", "show", "done", "--json")
    assert (json.loads(done.stdout)["goal"], done.stdout) == ("Greet Ada\x9b\u202e", shown(done.stdout))
