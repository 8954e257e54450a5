"""`ioa goals` and `ioa goal …`."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Costs, Everything, Labels, Limit, Listing, OpenOnly, Out, Quiet, Traces, Url
from ioa.cli.terminal import Terminal

goal = typer.Typer(no_args_is_help=True, help="Look at one goal.")

GoalIdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The goal's id or its unique beginning, as `ioa goals` lists it; `USER/ID` of another user's.",
        show_default=False,
    ),
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
def state(
    goal_id: GoalIdArgument,
    at: Annotated[int | None, typer.Option(metavar="N", help="As of the entry with this sequence.", show_default="now")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show how a goal's group and all nested teams stand, or stood at an entry."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.groups import show_states

        run_to_end(show_states(url, goal_id, at, Terminal(as_json=as_json)))


@goal.command()
def cancel(
    goal_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The goal's id or its unique beginning.", show_default=False)
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="As an admin: all goals of this user.", show_default=False)
    ] = None,
    why: Annotated[str, typer.Option(help="The reason that goes on record.")] = "",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a goal and every team that works for it, or all goals of a user, including goals that have not begun."""
    if (goal_id is None) is (user is None):
        raise typer.BadParameter("Give either the ID of a goal or --user.")
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import cancel_goal, cancel_user_goals
        from ioa.protocol.ids import UserId

        terminal = Terminal(as_json=as_json)
        run_to_end(cancel_user_goals(url, UserId(user), why, terminal) if user else cancel_goal(url, goal_id or "", why, terminal))


def rerun(
    goal_id: GoalIdArgument,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The new text of the message.", show_default=False)],
    at: Annotated[
        int,
        typer.Option(metavar="SEQ", help="The entry of the message, by its `seq` in `ioa group show --json`.", show_default=False),
    ],
    out: Out = None,
    url: Url = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Launch a new goal that continues a goal's conversation up to one message, with this message replaced, and follow it.

    The new goal has the files, team and limits of the earlier goal, which is not changed. Exit codes: as of `ioa run`.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.goals import rerun_goal

        code = run_to_end(rerun_goal(url, goal_id, at, message, out, Terminal(as_json=as_json, quiet=quiet)))
    raise typer.Exit(code)
