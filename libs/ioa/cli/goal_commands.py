"""`ioa goals` and `ioa goal …`."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Costs, Everything, Labels, Limit, Listing, OpenOnly, Out, Quiet, Traces, Url
from ioa.cli.terminal import Terminal

goal = typer.Typer(no_args_is_help=True, help="Look at one goal.")

GoalIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The goal's id or its unique beginning, as `ioa goals` lists it.", show_default=False)
]


def goals(
    limit: Limit = 50,
    everything: Everything = False,
    open_only: OpenOnly = False,
    label: Labels = [],  # noqa: B006
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the goals on record and how they stand, the newest first."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import list_goals
        from ioa.protocol.labels import read_labels

        asked = Listing(limit, everything, open_only, read_labels(label))
        run_to_end(list_goals(url, asked, Terminal(as_json=as_json)))


@goal.command()
def show(
    goal_id: GoalIdArgument,
    out: Out = None,
    traces: Traces = None,
    costs: Costs = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show a goal, its team, its tasks and how it ended; with --out, write its files, with --traces what tasks noted."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import show_goal

        run_to_end(show_goal(url, goal_id, out, traces, Terminal(as_json=as_json), costs=costs))


@goal.command()
def watch(goal_id: GoalIdArgument, out: Out = None, url: Url = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Follow a goal from its first message to its end; exits 1 if it fails."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import watch_goal

        code = run_to_end(watch_goal(url, goal_id, out, Terminal(as_json=as_json, quiet=quiet)))
    raise typer.Exit(code)


@goal.command()
def cancel(
    goal_id: GoalIdArgument,
    why: Annotated[str, typer.Option(help="The reason that goes on record.")] = "",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a goal and every team that works for it."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import cancel_goal

        run_to_end(cancel_goal(url, goal_id, why, Terminal(as_json=as_json)))
