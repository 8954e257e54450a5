"""Planning a team for a goal with the language model of the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.agent.definition import AgentDefinition
from ioa.cli.command import run_to_end
from ioa.cli.options import AsJson, Url
from ioa.cli.reach import open_reached_system
from ioa.cli.run import Wanted, run_goal
from ioa.cli.terminal import Terminal
from ioa.client.drawing import drawn
from ioa.errors import InvalidInputError
from ioa.foreign_text import shown_in_line
from ioa.hosting.brains import open_minds
from ioa.ports.brain import Contact, Mission, Plans
from ioa.ports.meter import Meter
from ioa.protocol.goal_order import order_of
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Need, Search, SearchResult
from ioa.protocol.team import MAX_GOAL_CHARS, TeamSpec, document_of, to_toml
from ioa.runtime.exit_code import ExitCode

_PLANNER = AgentDefinition("planner", description="Plans a team for whoever asks, and is none of it.")


class _Tools:
    """Team formation's tools for somebody who is no agent."""

    def __init__(self, system: NatsSystemClient) -> None:
        self._system = system

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Ask discovery who fits."""
        return await self._system.search(Search(needs=tuple(needs)))

    async def contacts(self) -> Sequence[Contact]:
        """Know nobody."""
        return ()


async def plan_goal(url: str | None, goal: str) -> tuple[TeamSpec | None, Meter]:
    """Plan a team, and say who did and what it has cost; None: the goal needs no policy.

    Raises:
        InvalidInputError: There is no goal, it is too long, no model is configured, or a setting of it is malformed.
        UnavailableError: The system cannot be reached, or discovery does not answer.
    """
    if not goal.strip() or len(goal) > MAX_GOAL_CHARS:
        raise InvalidInputError(f"A goal has 1 to {MAX_GOAL_CHARS:,} characters, and this one {len(goal):,}.")
    card, meter = _PLANNER.card_as(AgentId(_PLANNER.agent_id)), Meter()
    async with open_reached_system(url) as system, open_minds([_PLANNER], os.environ) as [mind]:
        if not isinstance(mind.brain, Plans):
            raise InvalidInputError("Teams are planned by a language model, and none is configured.", hint="Set IOA_LLM_MODEL.")
        team = await mind.brain.plan(Mission(goal, (), card, depth=0, meter=meter), _Tools(system))
    return team, meter


def tell_plan(team: TeamSpec | None, meter: Meter, out: Path | None, terminal: Terminal, *, drawn_too: bool) -> None:
    """Write the team file, to a file or else to standard output, and say who has planned it at what cost.

    Raises:
        InvalidInputError: The file cannot be written.
    """
    by, usage = meter.decided_by, meter.total
    if terminal.as_json:
        planned_by = None if by is None else by.model_dump(mode="json", exclude_defaults=True)
        spent = usage.model_dump(mode="json", exclude_defaults=True)
        terminal.document({"team": None if team is None else document_of(team), "planned_by": planned_by, "usage": spent})
    if team is None:
        terminal.note("The goal needs no policy: `ioa run` it.")
    else:
        if drawn_too:
            terminal.result.print(Text(drawn(team.policy)), soft_wrap=True)
        if out is not None:
            _write(out, to_toml(team))
        if out is None or drawn_too:
            terminal.result.print(Text(to_toml(team)), soft_wrap=True)
    if by is not None:
        instead = f" instead of {by.instead_of}: {by.cause}" if by.instead_of else ""
        told = f"Planned by {by.name or by.kind}{instead}{f', {usage.tokens:,} tokens' if usage.tokens else ''}"
        terminal.progress.tell(shown_in_line(told))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror or error}.") from None


def plan(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the team is to reach.", show_default=False)],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the team file there.", show_default=False)] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Show the plan, ask whether it is to be run, and run it then.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Plan a team for a goal with the language model of the environment (IOA_LLM_MODEL). No goal runs unless --approve is given."""
    if approve and as_json:
        raise InvalidInputError("--approve asks a person, and --json does not show the plan to one.", hint="Leave one of them out.")
    terminal = Terminal(as_json=as_json)
    planned, meter = run_to_end(plan_goal(url, goal))
    tell_plan(planned, meter, out, terminal, drawn_too=approve)
    if not approve or planned is None:
        return ExitCode.DONE
    if not typer.confirm("Run it?", err=True):
        terminal.note("Not approved: nothing was published.")
        return ExitCode.DONE
    return run_to_end(run_goal(Wanted(order_of(goal, team=planned), (), None, url, None, None), terminal))
