"""`ioa team`: checks, draws, tries, plans, stores and runs team files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.text import Text

from ioa.agent.definition import AgentDefinition
from ioa.cli.command import command, open_reached_system
from ioa.cli.groups import find_group
from ioa.cli.output.console import create_table
from ioa.cli.output.terminal import Terminal
from ioa.cli.run import run_goal
from ioa.client.client import Client
from ioa.client.drawing import draw_group, draw_policy
from ioa.client.rehearsal import Played, read_script, rehearse
from ioa.errors import InvalidInputError
from ioa.foreign_text import shown_in_line
from ioa.hosting.brains import open_minds
from ioa.ports.brain_types import Contact, Mission
from ioa.ports.meter import Meter
from ioa.protocol.agents.search import Need, Search, SearchResult
from ioa.protocol.goal_order import order_of
from ioa.protocol.ids import AgentId
from ioa.protocol.teams.checker import PolicyFinding
from ioa.protocol.teams.stored_teams import TeamReference
from ioa.protocol.teams.team_file import MAX_GOAL_CHARS, TeamError, TeamSpec, document_of, read_json, read_toml, to_toml
from ioa.runtime.exit_code import ExitCode

team = typer.Typer(no_args_is_help=True, help="Teams with a policy, which decides the speakers and the next step.")

_PLANNER = AgentDefinition("planner", description="Plans a team for a user, and is no member of it.")


class _PlanningTools:
    """The tools of team formation for a planner that is no agent of the system."""

    def __init__(self, system: Client) -> None:
        self._system = system

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Search agents."""
        return await self._system.find_agents(Search(needs=tuple(needs)))

    async def contacts(self) -> Sequence[Contact]:
        """Return no contacts."""
        return ()


@command(team, "plan")
async def plan(system: Client, terminal: Terminal, goal: str, *, out: Path | None = None) -> None:
    """Plan a team for a goal with the language model of the environment (IOA_LLM_MODEL). `ioa team run` runs it.

    Args:
        goal (GOAL): What the team is to reach.
        out (FILE): Write the team file there.
    """
    if not goal.strip() or len(goal) > MAX_GOAL_CHARS:
        raise InvalidInputError(f"A goal has 1 to {MAX_GOAL_CHARS:,} characters, and this one {len(goal):,}.")
    from ioa.agent.model import ModelBrain  # other commands need no model

    card, meter = _PLANNER.card_as(AgentId(_PLANNER.agent_id)), Meter()
    async with open_minds([_PLANNER], os.environ) as [mind]:
        if not isinstance(mind.brain, ModelBrain):
            raise InvalidInputError("Teams are planned by a language model, and none is configured.", hint="Set IOA_LLM_MODEL.")
        planned = await mind.brain.plan(Mission(goal, (), card, meter=meter), _PlanningTools(system))
    show_plan(planned, meter, out, terminal)


def show_plan(team: TeamSpec | None, meter: Meter, out: Path | None, terminal: Terminal) -> None:
    """Write the team file, to a file or to standard output, and report its planner and the cost.

    Raises:
        InvalidInputError: The file cannot be written.
    """
    by, usage = meter.decided_by, meter.total
    if terminal.as_json:
        planned_by, spent = (one and one.model_dump(mode="json", exclude_defaults=True) for one in (by, usage))
        terminal.document({"team": team and document_of(team), "planned_by": planned_by, "usage": spent})
    if team is None:
        terminal.note("The goal needs no policy: `ioa run` it.")
    elif out is None:
        terminal.result.print(Text(to_toml(team)), soft_wrap=True)
    else:
        try:
            out.write_text(to_toml(team), encoding="utf-8")
        except OSError as error:
            raise InvalidInputError(f"{out} cannot be written: {error.strerror or error}.") from None
    if by is not None:
        tokens = f", {usage.tokens:,} tokens" if usage.tokens else ""
        terminal.progress.print(shown_in_line(f"Planned by {by.name or by.kind}{tokens}"))


def read_team(file: Path) -> TeamSpec:
    """Read a team file, TOML or JSON by its name.

    Raises:
        InvalidInputError: It cannot be read; a `TeamError` if it is no team.
    """
    return (read_json if file.suffix == ".json" else read_toml)(_read_text(file))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InvalidInputError(f"{file} cannot be read: {why}.") from None


@command(team, "check")
def check_file(terminal: Terminal, file: Path) -> ExitCode:
    """Report errors and warnings of a team file. Exits 2 if there is an error.

    Args:
        file (FILE): A team file, TOML or JSON.
    """
    try:
        team = read_team(file)
        findings: tuple[PolicyFinding, ...] = team.check()
        summary = f"{team.team}: {len(team.policy.roles)} roles, {len(team.policy.nodes)} nodes"
    except TeamError as error:
        findings, summary = error.findings, ""
    is_wrong = any(one.kind == "error" for one in findings)
    lines = [*(f"{one.kind}: {one}" for one in findings), *([] if is_wrong else [summary])]
    terminal.show({"ok": not is_wrong, "findings": [one._asdict() for one in findings]}, *lines)
    return ExitCode.BAD_USE if is_wrong else ExitCode.DONE


@command(team, "draw")
async def draw(file: Path | None = None, *, group: str | None = None, url: str | None = None) -> None:
    """Draw the policy of a team as a Mermaid diagram: a box for each node, an arrow for each exit.

    Args:
        file (FILE): A team file, TOML or JSON.
        group (COMM_ID): Draw the policy of a group instead, and mark its current node.
    """
    if file is not None and group is None:
        picture = draw_policy(read_team(file).policy)
    elif file is None and group is not None:
        async with open_reached_system(url) as system:
            picture = draw_group(await system.group(await find_group(system, group)))
    else:
        raise InvalidInputError("Name a team file, or a group with --group.")
    Terminal(as_json=False).result.print(Text(picture), soft_wrap=True)


@command(team, "try")
def try_file(terminal: Terminal, file: Path, *, script: Path | None = None) -> None:
    """Play a team in memory, without a system or a model, and show the speakers.

    Args:
        file (FILE): A team file, TOML or JSON.
        script (FILE): Messages and choices of members, one line for each turn of a member or of the holder of a role: `who: words`,
            `who > next: words` (a node, an option, or speakers separated by commas), `who {field = value}: words`, `who !silent`;
            `#` begins a comment. A rejected action is shown as rejected, and the member's next line is tried. A member without a
            line speaks, and leaves choices to the policy.
    """
    team = read_team(file)
    lines = {} if script is None else read_script(_read_text(script))
    width = max(len(node.name) for node in team.policy.nodes)
    for played in rehearse(team, lines):
        if terminal.as_json:
            shown: dict[str, object] = {"why": played.refused} if played.refused else {}
            shown |= {} if played.heard_by is None else {"heard_by": played.heard_by}
            event = "end" if not played.node else "refused" if played.refused else "turn"
            terminal.line(event, turn=played.turn, node=played.node, speaker=played.speaker, words=played.words, **shown)
        terminal.print(Text(_turn_line(played, width)))
    if numbers := sorted(line.number for unused in lines.values() for line in unused):
        if terminal.as_json:
            terminal.line("left_over", lines=numbers)
        terminal.note(f"note: no turn came for line {', '.join(map(str, numbers))} of the script")


def _turn_line(played: Played, width: int) -> str:
    """Describe a turn, with the other choices that were possible."""
    offered, notes = played.offered, list[str]()
    if played.heard_by is not None:
        notes.append(f"heard by {', '.join(played.heard_by) or 'no other member'}")
    if offered is not None:
        choices = {"name": offered.next_speakers, "go to": offered.go, "choose": offered.options}
        options = [f"may {what} {one}" for what, names in choices.items() for one in names]
        options += ["may give out tasks"] * bool(offered.tasks)
        notes += [f"[{', '.join(options)}]"] * bool(options)
    notes += [f"refused: {played.refused}"] if played.refused else []
    words = f"{played.speaker}: {played.words}" if played.speaker else played.words
    return "   ".join([f"{played.turn:>4}  {played.node:<{width}}  {words}", *notes])


@command(team, "put")
async def put_file(system: Client, terminal: Terminal, file: Path) -> None:
    """Keep a team under its own name, as the next version of it; goals can name it, and a version never changes.

    A team equal to the newest version is not stored again. A name belongs to the user of its first version.

    Args:
        file (FILE): A team file, TOML or JSON.
    """
    stored = await system.put_team(read_team(file))
    terminal.show({"name": stored.name, "version": stored.version, "user": stored.user}, str(stored.reference))


@command(team, "show")
async def show_team(system: Client, terminal: Terminal, name: str | None = None) -> None:
    """List the stored teams, with version and owner, or print one as a team file.

    Args:
        name (NAME[@VERSION]): A stored team: print its team file.
    """
    if name is None:
        rows = await system.teams()
        table = create_table((), [(f"{row.name}@{row.version}", f"of {row.user}") for row in rows])
        shown = table if rows else "No team is stored. Store one: ioa team put FILE"
        terminal.show({"teams": [row.model_dump(mode="json") for row in rows]}, shown)
        return
    found = await system.team(name)
    if terminal.as_json:
        terminal.document({**found.model_dump(mode="json", exclude={"team"}), "team": document_of(found.team)})
    heading = f"# {found.reference} of {found.user}, {found.at:%Y-%m-%d %H:%M} UTC"
    terminal.result.print(Text(f"{heading}\n{to_toml(found.team)}"), soft_wrap=True)


def is_file_of_team(named: Path) -> bool:
    """Whether the argument is a team file: a file of this name exists, or the name is not valid for a stored team."""
    try:
        TeamReference.parse(str(named))
    except InvalidInputError:
        return True
    return named.is_file()


@command(team, "run", has_quiet=True)
async def run(
    terminal: Terminal,
    file: Path,
    *,
    goal: str | None = None,
    inputs: Sequence[Path] = (),
    timeout: float | None = None,
    out: Path | None = None,
    pool: Path | None = None,
    allow_code: bool = False,
    url: str | None = None,
) -> ExitCode:
    """Publish the goal with the team and follow it, as `ioa run` does. Exit codes are those of `ioa run`.

    `ioa waiting` lists the turns of people, and `ioa answer` answers them.

    Args:
        file (FILE|NAME): A team file, TOML or JSON, or a team that was put: NAME or NAME@VERSION.
        goal (TEXT): What the team works at. Default: the goal of the team.
    """
    named: str | None = None
    if is_file_of_team(file):
        team = read_team(file)
    else:
        async with open_reached_system(url) as system:
            stored = await system.team(str(file))
        team, named = stored.team, str(stored.reference)
    text = goal or team.goal
    if not text:
        raise InvalidInputError(f"The team {team.team} has no goal of its own.", hint="Name its goal: --goal.")
    order = order_of(text, team=named or team, timeout=timeout)
    return await run_goal(terminal, order, inputs, out, url=url, pool=pool, allow_code=allow_code)
