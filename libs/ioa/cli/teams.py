"""Team files: read, checked, drawn and tried, with no system in reach; put under their names; and the goals they are run for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ioa.cli.command import command
from ioa.cli.groups import find_group
from ioa.cli.options import AllowCode, AsJson, Inputs, Out, PoolOfGoal, Quiet, Timeout, Url
from ioa.cli.people import play
from ioa.cli.reach import open_reached_system
from ioa.cli.run import DEFAULT_OUT, Wanted, run_goal
from ioa.cli.team_plans import plan
from ioa.cli.terminal import Terminal
from ioa.client.drawing import drawn, drawn_group
from ioa.client.rehearsal import Played, read_script, rehearse
from ioa.errors import InvalidInputError
from ioa.protocol.goal_order import GoalOrder, order_of
from ioa.protocol.named_teams import NamedTeam, TeamReference
from ioa.protocol.policy_check import PolicyFinding, listed
from ioa.protocol.team import TeamError, TeamSpec, document_of, read_json, read_toml, to_toml
from ioa.protocol.team_check import check_team
from ioa.runtime.exit_code import ExitCode

team = typer.Typer(no_args_is_help=True, help="Teams with a policy, which decides the speakers and the next step.")

command(team, "plan")(plan)

TeamFile = Annotated[Path, typer.Argument(metavar="FILE", help="A team file, TOML or JSON.", show_default=False)]

_MAX_FILE_BYTES = 256_000


def read_team(file: Path) -> TeamSpec:
    """Read a team file, TOML or JSON by its name.

    Raises:
        InvalidInputError: It cannot be read; a `TeamError` if it is no team.
    """
    text = _text(file)
    return read_json(text) if file.suffix == ".json" else read_toml(text)


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > _MAX_FILE_BYTES:
            raise InvalidInputError(f"{file} has {len(data):,} bytes; {_MAX_FILE_BYTES:,} are the most.")
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{file} cannot be read: it is no text in UTF-8.") from None


@command(team, "check")
def check_file(file: TeamFile, as_json: AsJson = False) -> ExitCode:
    """Report errors and warnings of a team file. Exits 2 if there is an error."""
    terminal = Terminal(as_json=as_json)
    try:
        team = read_team(file)
        findings: tuple[PolicyFinding, ...] = check_team(team)
        told = f"{team.team}: {len(team.policy.roles)} roles, {len(team.policy.nodes)} nodes"
    except TeamError as error:
        findings, told = error.findings, ""
    wrong = any(one.kind == "error" for one in findings)
    if terminal.as_json:
        terminal.document({"ok": not wrong, "findings": [one._asdict() for one in findings]})
    for one in findings:
        terminal.print(Text(f"{one.kind}: {one}"))
    if not wrong:
        terminal.print(Text(told))
    return ExitCode.BAD_USE if wrong else ExitCode.DONE


def draw_file(file: Path, terminal: Terminal) -> None:
    """Write the policy of a team file as a picture.

    Raises:
        InvalidInputError: As in `read_team`.
    """
    terminal.result.print(Text(drawn(read_team(file).policy)), soft_wrap=True)


@command(team, "draw")
async def draw(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A team file, TOML or JSON.", show_default=False)] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COMM_ID", help="Draw the policy of a group instead, and mark its current node.", show_default=False),
    ] = None,
    url: Url = None,
) -> None:
    """Draw the policy of a team as a Mermaid diagram: a box for each node, an arrow for each exit."""
    match file, group:
        case Path(), None:
            draw_file(file, Terminal(as_json=False))
        case None, str():
            await draw_group(url, group, Terminal(as_json=False))
        case _:
            raise InvalidInputError("Name a team file, or a group with --group.")


async def draw_group(url: str | None, start: str, terminal: Terminal) -> None:
    """Write the policy of a group as a picture in which is marked where it stands.

    Raises:
        NotFoundError: There is no such group.
        InvalidInputError: No policy leads it.
    """
    async with open_reached_system(url) as system:
        standing = await system.group(await find_group(system, start))
    terminal.result.print(Text(drawn_group(standing)), soft_wrap=True)


@command(team, "try")
def try_file(
    file: TeamFile,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Messages and choices of members, one line for each turn of a member or of the holder of a role: `who: words`, "
            "`who > next: words` (several: `who > a, b: words`), `who -> node: words` (also decisions), "
            '`who => name: task`, `who {field = value, other = "in quotes"}: words`, `who <- newcomer {role = x}: words`, '
            "`who !silent`, `who !lost`; `#` begins a comment. "
            "What is refused is shown as refused, and the next line of that member is tried. Who has no line speaks, and leaves "
            "choices to the policy.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a team in memory, without a system or a model, and show the speakers."""
    terminal = Terminal(as_json=as_json)
    team = read_team(file)
    lines = {} if script is None else read_script(_text(script))
    width = max(len(node.name) for node in team.policy.nodes)
    for played in rehearse(team, lines):
        if terminal.as_json:
            event = "end" if not played.node else "refused" if played.refused else "turn"
            told: dict[str, object] = {"why": played.refused} if played.refused else {}
            if played.heard_by is not None:
                told["heard_by"] = list(played.heard_by)
            if played.removed:
                told["removed"] = list(played.removed)
            terminal.line(event, turn=played.turn, node=played.node, speaker=played.speaker, words=played.words, **told)
        else:
            terminal.print(Text(_told(played, width)))
        if played.left:
            numbers = [line.number for line in played.left]
            if terminal.as_json:
                terminal.line("left_over", lines=numbers)
            terminal.note(f"note: nobody came to say line {', '.join(map(str, numbers))} of the script")


def _told(played: Played, width: int) -> str:
    """Write a turn, with what else could have been chosen."""
    options = [] if played.offered is None else [f"may name {name}" for name in played.offered.next_speakers]
    options += [] if played.offered is None else [f"may go to {node}" for node in played.offered.go]
    options += [] if played.offered is None else [f"may choose {option}" for option in played.offered.options]
    options += ["may give out tasks"] if played.offered is not None and played.offered.tasks else []
    told = f"   [{', '.join(options)}]" if options else ""
    is_draft = played.offered is not None and played.offered.reviewed
    refused = f"   refused: {played.refused}" if played.refused else "   (a draft)" if is_draft else ""
    heard = "" if played.heard_by is None else f"   heard by {', '.join(played.heard_by) or 'nobody else'}"
    removed = f"   removed: {', '.join(played.removed)}" if played.removed else ""
    said = f"{played.speaker}: {played.words}" if played.speaker else played.words
    return f"{played.turn:>4}  {played.node:<{width}}  {said}{heard}{told}{refused}{removed}"


@command(team, "put")
async def put_file(file: TeamFile, url: Url = None, as_json: AsJson = False) -> None:
    """Keep a team under its own name, as the next version of it; goals can name it, and a version never changes.

    A team equal to the newest version is not stored again. A name belongs to the user of its first version.
    """
    terminal = Terminal(as_json=as_json)
    team = read_team(file)
    async with open_reached_system(url) as system:
        put = await system.put_team(team)
    if terminal.as_json:
        terminal.document({"name": put.name, "version": put.version, "user": put.user})
    terminal.print(Text(str(put.reference)))


async def list_teams(url: str | None, terminal: Terminal) -> None:
    """List the stored teams by name."""
    async with open_reached_system(url) as system:
        rows = await system.teams()
    if terminal.as_json:
        terminal.document({"teams": [row.model_dump(mode="json") for row in rows]})
    width = max([len(f"{row.name}@{row.version}") for row in rows], default=0)
    for row in rows:
        terminal.print(Text(f"{f'{row.name}@{row.version}':<{width}}  of {row.user}"))


@command(team, "show")
async def show_team(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME[@VERSION]", help="A stored team: print its team file.", show_default=False),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the stored teams, with version and owner, or print one as a team file."""
    terminal = Terminal(as_json=as_json)
    if name is None:
        await list_teams(url, terminal)
        return
    shown = await fetch_team(url, name)
    if terminal.as_json:
        terminal.document({**shown.model_dump(mode="json", exclude={"team"}), "team": document_of(shown.team)})
    terminal.result.print(
        Text(f"# {shown.reference} of {shown.user}, {shown.at:%Y-%m-%d %H:%M} UTC\n{to_toml(shown.team)}"), soft_wrap=True
    )


async def fetch_team(url: str | None, name: str) -> NamedTeam:
    """Read a team that was put, as `NAME` or `NAME@VERSION`.

    Raises:
        InvalidInputError: It can be no name.
        NotFoundError: There is none.
    """
    async with open_reached_system(url) as system:
        return await system.team(TeamReference.parse(name))


def is_file_of_team(named: Path) -> bool:
    """Whether the argument is a team file: a file of this name exists, or the name is not valid for a stored team."""
    try:
        TeamReference.parse(str(named))
    except InvalidInputError:
        return True
    return named.is_file()


def note_of_patience(team: TeamSpec, order: GoalOrder) -> str:
    """Say which person may be waited for longer than its goal lasts, whose default then never stands; empty if nobody is."""
    people = {role.name: role.timeout for role in team.policy.roles if role.human and role.timeout is not None}
    late = [name for name, within in people.items() if within.total_seconds() > order.timeout]
    if not late:
        return ""
    longest = max(people[name] for name in late).total_seconds()
    why = f"the goal ends after {order.timeout:,.0f} s, and {listed(late)} may be waited for as long as {longest:,.0f} s"
    return f"{why}: --timeout gives it more time"


def goal_of_team(team: TeamSpec, goal: str | None) -> str:
    """Return what a team works at: what is wanted, else what its file says.

    Raises:
        InvalidInputError: There is no goal.
    """
    words = goal or team.goal
    if not words:
        raise InvalidInputError(f"The team {team.team} has no goal of its own.", hint="Say what it works at: --goal.")
    return words


@command(team, "run")
async def run(
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
) -> ExitCode:
    """Publish the goal with the team and follow it, as `ioa run` does. Exit codes are those of `ioa run`.

    With --as the terminal shows what that person hears, and asks it for its turns; it needs a system that runs.
    """
    named = None if is_file_of_team(file) else await fetch_team(url, str(file))
    given = read_team(file) if named is None else named.team
    words = goal_of_team(given, goal)
    terminal, order = Terminal(as_json=as_json, quiet=quiet), order_of(words, team=given, timeout=timeout)
    if late := note_of_patience(given, order):
        terminal.note(f"note: {late}")
    if role is not None:
        return await play(url, order, inputs, role, out or DEFAULT_OUT, terminal)
    if named is not None:
        order = order_of(words, team=str(named.reference), timeout=timeout)
    return await run_goal(
        Wanted(order=order, files=inputs, out=out, url=url, data=None, pool=pool, allow_code=allow_code), terminal
    )
