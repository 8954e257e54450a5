"""Team files: read, checked and drawn, with no system in reach."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ioa.cli.terminal import Terminal
from ioa.client.drawing import drawn
from ioa.errors import InvalidInputError
from ioa.protocol.policy_check import Finding, check
from ioa.protocol.team import TeamError, TeamSpec, read_json, read_toml
from ioa.runtime.exit_code import ExitCode

_MAX_FILE_BYTES = 256_000


def read_team(file: Path) -> TeamSpec:
    """Read a team file, TOML or JSON by its name.

    Raises:
        InvalidInputError: It cannot be read; a `TeamError` if it is no team.
    """
    try:
        data = file.read_bytes()
        if len(data) > _MAX_FILE_BYTES:
            raise InvalidInputError(f"{file} has {len(data):,} bytes; {_MAX_FILE_BYTES:,} are the most for a team.")
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}.") from None
    return read_json(text) if file.suffix == ".json" else read_toml(text)


def check_file(file: Path, terminal: Terminal) -> ExitCode:
    """Tell what is wrong with a team file, each thing once."""
    try:
        team = read_team(file)
        findings: tuple[Finding, ...] = check(team.policy)
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
