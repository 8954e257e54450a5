"""The table of errors: what each class means to whoever answers a request, takes work off a queue or ends a command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import nats.errors
import pytest

import ioa.adapters.nats.wire.translated_errors  # noqa: F401 - it adds the rows of NATS' errors
from ioa.errors import ERRORS, ErrorRow, Fault, InvalidInputError, IoaError, Retry, UnavailableError, from_wire, row_of

EVERY_CLASS = """
import importlib, json, pkgutil, ioa
for module in pkgutil.walk_packages(ioa.__path__, "ioa."):
    if not module.name.endswith("__main__") and not module.name.startswith("ioa.testing"):
        importlib.import_module(module.name)
from ioa.errors import ERRORS, IoaError
kinds, found = [IoaError], []
while kinds:
    kind = kinds.pop()
    kinds += kind.__subclasses__()
    found.append((kind.__name__, ERRORS[kind].wire_code if kind in ERRORS else None))
print(json.dumps(found))
"""
"""Run in a process of its own: importing everything would leave much behind in this one."""


def test_every_class_means_something_of_its_own() -> None:
    """No two classes of the library go by one name on the wire, and those without a row, which stand for their base, are known."""
    run = subprocess.run([sys.executable, "-c", EVERY_CLASS], capture_output=True, text=True, check=True)
    found: list[tuple[str, str | None]] = json.loads(run.stdout)
    codes = Counter(code for _, code in found if code)
    assert [code for code, count in codes.items() if count > 1] == []
    assert sorted(name for name, code in found if code is None) == [
        "DeclinedError",
        "LeaseLostError",
        "NotLetInError",
        "NotPermittedError",
        "OutOfTimeError",
        "PromptTooLongError",
        "TeamError",
        "TooLateError",
        "TooManyMessagesError",
        "UndecidedError",
    ]


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (UnavailableError(""), ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning")),
        (InvalidInputError(""), ErrorRow("invalid_input", Fault.CALLER, Retry.BOUNDED, "info")),
        (nats.errors.TimeoutError(), ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning")),
        (nats.errors.MaxPayloadError(), ErrorRow("payload_too_large", Fault.CALLER, Retry.BOUNDED, "info")),
        (ConnectionResetError(), ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning")),
        (KeyError("x"), ErrorRow("crashed", Fault.SYSTEM, Retry.BOUNDED, "error")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_outages_are_told_from_faults_and_bugs(error: Exception, row: ErrorRow) -> None:
    """Only what an outage put off is tried without end; a bug is tried five times and logged as an error."""
    assert row_of(error) == row


def test_whoever_is_at_fault_is_told_quietly() -> None:
    """What callers do wrong is no alarm of ours: it is logged as information, but for what is not installed."""
    levels = {kind.__name__: row.level for kind, row in ERRORS.items() if row.fault is Fault.CALLER}
    assert {name for name, level in levels.items() if level != "info"} == {"MissingExtraError"}


def test_an_unknown_code_is_an_error_all_the_same() -> None:
    """A peer of a later version may report what this one does not know."""
    error = from_wire("brand_new", "It broke.", "Mend it.")
    assert (type(error), error.message, error.hint) == (IoaError, "It broke.", "Mend it.")
