"""`ioa team …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AllowCode, AsJson, Inputs, Out, PoolOfGoal, Quiet, Timeout, Url
from ioa.cli.terminal import Terminal

team = typer.Typer(no_args_is_help=True, help="Teams with a policy: who speaks when, and what leads on.")

TeamFile = Annotated[Path, typer.Argument(metavar="FILE", help="A team file, TOML or JSON.", show_default=False)]


@team.command()
def check(file: TeamFile, as_json: AsJson = False) -> None:
    """Say all that is wrong with a team file, and what is worth a thought. Exits 2 if there is an error."""
    with reported(as_json=as_json):
        from ioa.cli.teams import check_file

        code = check_file(file, Terminal(as_json=as_json))
    raise typer.Exit(code)


@team.command()
def draw(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A team file, TOML or JSON.", show_default=False)] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COMM_ID", help="Draw the policy of a group instead, and mark where it stands.", show_default=False),
    ] = None,
    url: Url = None,
) -> None:
    """Draw the policy of a team as a Mermaid diagram: a box for each node, an arrow for each exit."""
    with reported(as_json=False):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.teams import draw_file, draw_group
        from ioa.errors import InvalidInputError

        terminal = Terminal(as_json=False)
        match file, group:
            case Path(), None:
                draw_file(file, terminal)
            case None, str():
                run_to_end(draw_group(url, group, terminal))
            case _:
                raise InvalidInputError("Name a team file, or a group with --group.")


@team.command("try")
def try_(
    file: TeamFile,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What members say and choose, one line a turn of a member or of a holder of a role: `who: words`, "
            "`who > next: words` (several: `who > a, b: words`), `who -> node: words` (also who is asked to decide), "
            '`who => name: task`, `who {field = value, other = "in quotes"}: words`, `who <- newcomer {role = x}: words`, '
            "`who !silent`, `who !lost`; `#` begins a comment. "
            "What is refused is shown as refused, and the next line of that member is tried. Who has no line speaks, and leaves "
            "choices to the policy.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a team in memory, with no system and no model: who speaks when."""
    with reported(as_json=as_json):
        from ioa.cli.teams import try_file

        try_file(file, script, Terminal(as_json=as_json))


@team.command()
def plan(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the team is to reach.", show_default=False)],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the team file there.", show_default=False)] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Show the plan, ask whether it is to be run, and run it then.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Plan a team for a goal with the language model of the environment (IOA_LLM_MODEL). No goal runs unless --approve is given."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.run import Wanted, run_goal
        from ioa.cli.team_plans import plan_goal, tell_plan
        from ioa.errors import InvalidInputError
        from ioa.protocol.goal_order import order_of
        from ioa.runtime.exit_code import ExitCode

        if approve and as_json:
            raise InvalidInputError("Somebody has to read what is approved: --approve goes without --json.")
        terminal = Terminal(as_json=as_json)
        planned, meter = run_to_end(plan_goal(url, goal))
        tell_plan(planned, meter, out, terminal, drawn_too=approve)
        code = ExitCode.DONE
        if approve and planned is not None:
            if typer.confirm("Run it?", err=True):
                code = run_to_end(run_goal(Wanted(order_of(goal, team=planned), (), None, url, None, None), terminal))
            else:
                terminal.note("Not approved: nothing was published.")
    raise typer.Exit(code)


@team.command()
def put(file: TeamFile, url: Url = None, as_json: AsJson = False) -> None:
    """Keep a team under its own name, as the next version of it; goals can name it, and a version never changes.

    What is the newest version already is put once. A name is whose first version it bears.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.teams import put_file

        run_to_end(put_file(url, file, Terminal(as_json=as_json)))


@team.command("list")
def list_(url: Url = None, as_json: AsJson = False) -> None:
    """List the teams that were put, each with its newest version and whose it is."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.teams import list_teams

        run_to_end(list_teams(url, Terminal(as_json=as_json)))


@team.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="A team that was put.", show_default=False)],
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write a team that was put as a team file."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.teams import show_team

        run_to_end(show_team(url, name, Terminal(as_json=as_json)))


@team.command()
def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|NAME", help="A team file, TOML or JSON, or a team that was put: NAME or NAME@VERSION.", show_default=False
        ),
    ],
    goal: Annotated[str | None, typer.Option(help="What the team works at.", show_default="the goal of the team")] = None,
    inputs: Inputs = [],  # noqa: B006
    timeout: Timeout = None,
    out: Out = None,
    pool: PoolOfGoal = None,
    allow_code: AllowCode = False,
    role: Annotated[
        str | None,
        typer.Option("--as", metavar="ROLE", help="Take this role, a person's, on this terminal.", show_default=False),
    ] = None,
    url: Url = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Publish the goal with the team and follow it, as `ioa run` does. Exit codes are those of `ioa run`.

    With --as the terminal shows what that person hears, and asks it for its turns; it needs a system that runs.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.run import DEFAULT_OUT, Wanted, run_goal
        from ioa.cli.teams import fetch_team, goal_of_team, is_file_of_team, note_of_patience, read_team
        from ioa.protocol.goal_order import order_of

        named = None if is_file_of_team(file) else run_to_end(fetch_team(url, str(file)))
        given = read_team(file) if named is None else named.team
        words = goal_of_team(given, goal)
        terminal, order = Terminal(as_json=as_json, quiet=quiet), order_of(words, team=given, timeout=timeout)
        if late := note_of_patience(given, order):
            terminal.note(f"note: {late}")
        if role is not None:
            from ioa.cli.people import play

            raise typer.Exit(run_to_end(play(url, order, inputs, role, out or DEFAULT_OUT, terminal)))
        if named is not None:
            order = order_of(words, team=str(named.reference), timeout=timeout)
        code = run_to_end(
            run_goal(Wanted(order=order, files=inputs, out=out, url=url, data=None, pool=pool, allow_code=allow_code), terminal)
        )
    raise typer.Exit(code)
