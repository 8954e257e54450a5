"""The command `ioa`. Each command imports what it needs when it runs, so that help and errors come at once."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ioa.cli import (
    agent_commands,
    credential_commands,
    dead_letter_commands,
    goal_commands,
    group_commands,
    key_commands,
    people_commands,
    team_commands,
    trace_commands,
)
from ioa.cli.failures import reported
from ioa.cli.options import DATA, WEB_PORT, AllowCode, AsJson, Data, Inputs, Labels, PoolOfGoal, Quiet, Timeout, Url
from ioa.cli.terminal import Terminal, escape_unprintable, read_stdin, report, report_bug, tell_version
from ioa.runtime.exit_code import ExitCode


class _Commands(TyperGroup):
    """The commands, with wrong use reported as JSON where JSON was asked for, and the traceback of a bug fit to be shown."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name."""
        escape_unprintable()
        given = options.get("args", args[0] if args else None)
        as_json = options.get("standalone_mode", True) and "--json" in (sys.argv if given is None else given)
        try:
            code = super().main(*args, **(options | {"standalone_mode": False} if as_json else options))
        except Exception as error:  # noqa: BLE001 - the last resort: what a user sees of a bug
            # Typer has its own copy of click or not, depending on its version; what they share is this method.
            message = getattr(error, "format_message", None)
            if message is None:
                report_bug(error)
                code = ExitCode.FAILED
            else:
                report("usage", message(), "`--help` shows how to use it.", as_json=True)
                code = ExitCode.BAD_USE
        return sys.exit(code if isinstance(code, int) else ExitCode.DONE)


class _TakesText(TyperCommand):
    """A command whose text may begin with a minus sign that no option begins with: `-2^2`, or `- item` of a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Tell the text from the options by what is behind its sign."""
        valued = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        at = next((at for at, one in enumerate(args) if _TEXT.match(one) and not valued.intersection(args[at - 1 : at])), None)
        if at is not None and "--" not in args:
            args = [*args[:at], *args[at + 1 :], "--", args[at]]
        return super().parse_args(ctx, args)


_TEXT = re.compile(r"-[^A-Za-z-]")

app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="An Internet of Agents on NATS: agents find each other, form teams and finish goals together.",
)
app.add_typer(agent_commands.agent, name="agent")
app.add_typer(agent_commands.agents, name="agents")
app.add_typer(credential_commands.credentials, name="credentials")
app.add_typer(dead_letter_commands.dead, name="dead")
app.add_typer(goal_commands.goal, name="goal")
app.add_typer(group_commands.group, name="group")
app.add_typer(key_commands.keys, name="keys")
app.add_typer(team_commands.team, name="team")
app.add_typer(trace_commands.trace, name="trace")


def _tell_version(asked: bool) -> None:
    if asked:
        tell_version()
        raise typer.Exit(ExitCode.DONE)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def up(
    data: Data = DATA,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where NATS listens; 0 takes a free port.")] = 4222,
    pool: Annotated[Path | None, typer.Option(metavar="FILE", help="A pool file: the agents to run.", show_default=False)] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve the services' metrics on this port of 127.0.0.1 (0: a free port), the agents' on free ports.",
            show_default=False,
        ),
    ] = None,
    callout: Annotated[
        bool, typer.Option("--callout", help="Let in third parties by tokens of IOA_CALLOUT_ISSUER for IOA_CALLOUT_AUDIENCE.")
    ] = False,
    allow_code: AllowCode = False,
    web: Annotated[bool, typer.Option("--web", help="Let programs in by HTTP, on this machine.")] = False,
    web_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port for that; 0 takes a free one.")] = WEB_PORT,
    as_json: AsJson = False,
) -> None:
    """Run the whole system in the foreground.

    Prints one line, `ready nats://…`, when every part answers. SIGTERM or Ctrl-C ends it in good order. Started again on the same
    folder, it carries on with what was open. Other users of this machine are not let in: who may read the folder is.
    """
    from ioa.cli.foreground import run_to_end
    from ioa.cli.up import run_system

    terminal = Terminal(as_json=as_json)
    with reported(as_json=as_json):
        try:
            served = web_port if web else None
            run_to_end(run_system(data, port, pool, metrics, terminal, allow_code=allow_code, callout=callout, web=served))
        except KeyboardInterrupt:
            if as_json:
                terminal.line("stopped")


@app.command()
def demo() -> None:
    """Run the whole system here and real goals on a real file, show them live, and stop everything.

    What they produce lies in `out`. Needs what the extra `laptop` brings.
    """
    with reported(as_json=False):
        from ioa.cli.demo import become_demo

        become_demo()


@app.command(cls=_TakesText)
def run(
    goal: Annotated[
        str,
        typer.Argument(
            metavar="GOAL", help="What you want done, in a sentence; - reads it from standard input.", show_default=False
        ),
    ],
    inputs: Inputs = [],  # noqa: B006
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent or pool that leads.", show_default=False)] = None,
    max_turns: Annotated[int | None, typer.Option(help="How many messages the discussion may take.", show_default="40")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="How many tokens of language models it may take.", show_default="no bound")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="What it may cost, in the currency the agents count in.", show_default="no bound")
    ] = None,
    timeout: Timeout = None,
    label: Labels = [],  # noqa: B006
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The produced files go into DIR/<goal id>, a new folder.", show_default="out"),
    ] = None,
    pool: PoolOfGoal = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of that system; a temporary one by default.", show_default=False)
    ] = None,
    allow_code: AllowCode = False,
    url: Url = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Launch a goal, follow it live, and write the files it produced.

    The answer and where the files lie go to standard output, how it goes to standard error.

    It runs on the system in reach, or with --pool on one that lives only as long as the goal. Exit codes: 0 done, 1 the goal
    failed, 2 wrong use, 3 no system in reach.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.run import Wanted, run_goal
        from ioa.protocol.goal_order import order_of
        from ioa.protocol.labels import read_labels, refuse_reserved

        if goal == "-":
            goal = read_stdin()
        labels = read_labels(label)
        refuse_reserved(labels)
        bounds = {"max_turns": max_turns, "max_tokens": max_tokens, "max_cost": max_cost, "timeout": timeout}
        order = order_of(goal, agent=agent, labels=labels, **bounds)
        wanted = Wanted(order=order, files=inputs, out=out, url=url, data=data, pool=pool, allow_code=allow_code)
        code = run_to_end(run_goal(wanted, Terminal(as_json=as_json, quiet=quiet)))
    raise typer.Exit(code)


app.command("goals")(goal_commands.goals)
app.command("groups")(group_commands.groups)
app.command("rerun", cls=_TakesText)(goal_commands.rerun)
app.command("waiting")(people_commands.waiting)
app.command("answer", cls=_TakesText)(people_commands.answer)


@app.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago a goal must have ended: 7d, 12h, 30m.")
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Remove what is kept of goals that ended long ago: records, logs, results and files. Their ids stay taken.

    Group setup does this by itself after IOA_KEEP. On a system that asks who you are only an admin may do it. Exits 1 if a goal
    could not be removed.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.pruning import parse_age
        from ioa.cli.pruning import prune as prune_goals

        code = run_to_end(prune_goals(url, parse_age(older_than), Terminal(as_json=as_json), dry_run=dry_run))
    raise typer.Exit(code)


@app.command()
def audit(
    since: Annotated[str, typer.Option("--since", metavar="AGE", help="How far back: 7d, 12h, 30m.")] = "1d",
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Only what this one did, or was done to it.", show_default=False)
    ] = None,
    what: Annotated[
        str | None,
        typer.Option("--what", metavar="WORD", help="Only this deed (`launched`), or `refused`, or `done`.", show_default=False),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Say who joined, launched, cancelled or was refused, and how goals ended; never what anybody said.

    Who is refused again and again has one line a minute, with a count. On a system that asks who you are, auditors and admins may.
    """
    with reported(as_json=as_json):
        from ioa.cli.audit import show_audit
        from ioa.cli.foreground import run_to_end
        from ioa.cli.pruning import parse_age

        run_to_end(show_audit(url, parse_age(since), who, what, Terminal(as_json=as_json), follow=follow))


@app.command()
def doctor(
    url: Url = None,
    data: Data = DATA,
    probes: Annotated[
        bool,
        typer.Option("--probe", help="Also launch a goal that no agent gets, and report its progress. It stays on record."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with the system and how to mend it.

    Exit codes: 0 healthy, 1 problems, 3 nothing in reach.
    """
    with reported(as_json=as_json):
        from ioa.cli.doctor import examine_and_tell
        from ioa.cli.foreground import run_to_end

        code = run_to_end(examine_and_tell(url, data, Terminal(as_json=as_json), probes=probes))
    raise typer.Exit(code)
