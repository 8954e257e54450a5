"""The command `ioa`. The module of a command is imported when the command runs, so that help and errors appear at once."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ioa.cli.output.terminal import escape_unprintable, report, report_bug, write_version
from ioa.runtime.exit_code import ExitCode

_COMMANDS = {
    "up": ("up:up_app", "Run the whole system in the foreground."),
    "demo": ("up:demo_app", "Run a system and real goals here, and stop everything."),
    "run": ("run:app", "Launch a goal, follow it live, and write the files it produced."),
    "goals": ("goal_commands:goals", "List the goals on record and how they stand."),
    "goal": ("goal_commands:goal", "Look at one goal."),
    "rerun": ("goal_commands:rerun", "Launch a goal again with one message replaced."),
    "groups": ("groups:app", "List the groups as a tree, or show or replay one."),
    "waiting": ("people:waiting", "List what waits for people."),
    "answer": ("people:answer", "Answer as a person, or a question to the user."),
    "agents": ("agents:agents", "List the agents, or search among them."),
    "agent": ("agents:agent", "Run an agent."),
    "team": ("teams:team", "Teams with a policy: who speaks when, and what leads on."),
    "doctor": ("doctor:app", "Report what is wrong with the system and how to fix it."),
    "dead": ("operations:dead_app", "List messages that could not be processed, or show or retry one."),
    "trace": ("operations:trace_app", "Export traces of goals to OpenTelemetry."),
    "audit": ("operations:audit_app", "Report who did what, and who was refused."),
    "prune": ("operations:prune_app", "Remove goals that ended long ago."),
    "credentials": ("credentials:credentials", "Manage the names that may connect to NATS, and their keys."),
    "keys": ("http_keys:keys", "Manage the keys of HTTP clients."),
}
"""Module and attribute of each command below `ioa.cli`, and its line of help."""


def load_command(name: str) -> Any:
    """Import a command."""
    module, attribute = _COMMANDS[name][0].split(":")
    return typer.main.get_command(getattr(import_module(f"ioa.cli.{module}"), attribute))


def command_names() -> list[str]:
    """List the commands, as `ioa --help` does."""
    return list(_COMMANDS)


class _Commands(TyperGroup):
    """The commands. Wrong use is reported as JSON where JSON was requested, and control characters in tracebacks are escaped."""

    def __init__(self, **options: Any) -> None:
        stubs = {name: TyperCommand(name, help=text) for name, (_, text) in _COMMANDS.items()}
        super().__init__(**(options | {"commands": stubs}))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that the arguments name."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name."""
        escape_unprintable()
        given = options.get("args", args[0] if args else None)
        as_json = options.get("standalone_mode", True) and "--json" in (sys.argv if given is None else given)
        try:
            code = super().main(*args, **(options | {"standalone_mode": False} if as_json else options))
        except Exception as error:  # noqa: BLE001 - a bug is reported with its traceback
            # Typer may contain its own copy of click; both have this method.
            message = getattr(error, "format_message", None)
            if message is None:
                report_bug(error)
                code = ExitCode.FAILED
            else:
                report("usage", message(), "`--help` shows how to use it.", as_json=True)
                code = ExitCode.BAD_USE
        return sys.exit(code if isinstance(code, int) else ExitCode.DONE)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="An Internet of Agents on NATS: agents find each other, form teams and finish goals together.",
)


def _write_version(is_given: bool) -> None:
    if is_given:
        write_version()
        raise typer.Exit(ExitCode.DONE)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_write_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""
