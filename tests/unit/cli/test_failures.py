"""How commands fail: exit codes and messages, for people and for programs."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from ioa.cli.command import code_of, reported
from ioa.cli.main import app
from ioa.errors import (
    ConflictError,
    InvalidInputError,
    IoaError,
    MissingExtraError,
    NotFoundError,
    NotPermittedError,
    UnavailableError,
    only_error,
)
from ioa.runtime.exit_code import ExitCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInputError("x"), ExitCode.BAD_USE),
        (NotFoundError("x"), ExitCode.BAD_USE),
        (ConflictError("x"), ExitCode.BAD_USE),
        (MissingExtraError("x"), ExitCode.BAD_USE),
        (UnavailableError("x"), ExitCode.UNREACHABLE),
        (NotPermittedError("x"), ExitCode.BAD_USE),
        (IoaError("x"), ExitCode.FAILED),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: IoaError, code: ExitCode) -> None:
    """The caller's fault is 2, a system out of reach 3, anything else 1."""
    assert code_of(error) is code


def test_an_error_in_groups_is_found() -> None:
    """Task groups wrap errors; a single one inside is the error, two are a bug to be seen whole."""
    error = UnavailableError("gone")
    wrapped = ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
    assert (only_error(wrapped), only_error(ExceptionGroup("two", [error, error]))) == (error, None)


@pytest.mark.parametrize(
    ("as_json", "written"),
    [
        (False, "error: There is no goal [x].\n       `ioa goals` lists them.\n"),
        (True, '{"code": "not_found", "message": "There is no goal [x].", "hint": "`ioa goals` lists them."}\n'),
    ],
)
def test_error_has_a_message_and_a_hint(as_json: bool, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, in words or as one object."""
    with pytest.raises(typer.Exit) as left, reported(as_json=as_json):
        raise NotFoundError("There is no goal [x].", hint="`ioa goals` lists them.")
    assert (left.value.exit_code, *capsys.readouterr()) == (2, "", written)


def test_unexpected_exception_is_not_caught() -> None:
    """An error of another library is not hidden."""
    with pytest.raises(ZeroDivisionError), reported(as_json=True):
        raise ZeroDivisionError


@pytest.mark.parametrize("arguments", [["nonsense"], ["goal", "show"], ["up", "--port", "x"], ["run", "a", "--frobnicate"]])
def test_wrong_use_exits_with_two(arguments: list[str]) -> None:
    """A command, argument or option that does not exist is explained, as JSON where it was asked for."""
    plain = CliRunner().invoke(app, arguments)
    asked = CliRunner().invoke(app, [*arguments, "--json"])
    assert (plain.exit_code, asked.exit_code, asked.stdout, json.loads(asked.stderr)["code"]) == (2, 2, "", "usage")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", " "], "The goal cannot be read: goal:"),
        (["run", "x", "--agent", "a.b"], "'a.b' is not a valid id"),
        (["run", "x", "--input", "missing.csv"], "The input missing.csv is no file."),
        (["run", "x", "--max-turns", "-3"], "The goal cannot be read: max_turns:"),
        (["run", "x", "--url", "nats://127.0.0.1:9", "--pool", "p.toml"], "--url names a running system"),
        (["up", "--pool", "missing.toml"], "The pool file missing.toml cannot be read"),
        (["agent", "run", "missing.py:agent"], "There is no file missing.py."),
        (["agent", "run", "missing.py:agent", "--replica", "1", "--replicas", "3"], "joins as one, --replicas as several"),
    ],
)
def test_invalid_option_value_is_named_in_the_error(arguments: list[str], message: str) -> None:
    """Each wrong value exits with 2 and a sentence that names it, before anything is started."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert (result.exit_code, message in json.loads(result.stderr)["message"]) == (2, True), result.stderr
