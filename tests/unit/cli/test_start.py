"""What the command costs before it does anything."""

from __future__ import annotations


def test_help_of_the_command_names_each_command_as_its_module_does() -> None:
    """`ioa --help` shows lines that are written apart from the modules; none is empty, and each command loads."""
    from ioa.cli.main import command_names, load_command

    assert [name for name in command_names() if not load_command(name).help] == []


def test_misspelled_command_is_rejected_with_a_suggestion() -> None:
    """The commands are known before their modules are imported."""
    from typer.testing import CliRunner

    from ioa.cli.main import app

    done = CliRunner().invoke(app, ["gaol"])
    assert (done.exit_code, "Did you mean 'goal'" in done.stderr) == (2, True)
