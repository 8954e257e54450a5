"""The table of errors."""

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
"""Runs in another process, because it imports all modules."""


def test_wire_codes_are_unique() -> None:
    """A class without a row has the code of its base class."""
    run = subprocess.run([sys.executable, "-c", EVERY_CLASS], capture_output=True, text=True, check=True)
    found: list[tuple[str, str | None]] = json.loads(run.stdout)
    codes = Counter(code for _, code in found if code)
    assert [code for code, count in codes.items() if count > 1] == []


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
def test_row_distinguishes_outages_faults_and_bugs(error: Exception, row: ErrorRow) -> None:
    """Only an outage is retried without end; a bug is tried five times and logged as an error."""
    assert row_of(error) == row


def test_errors_of_callers_are_logged_as_info() -> None:
    """Except a missing extra."""
    levels = {kind.__name__: row.level for kind, row in ERRORS.items() if row.fault is Fault.CALLER}
    assert {name for name, level in levels.items() if level != "info"} == {"MissingExtraError"}


def test_unknown_code_is_a_plain_error() -> None:
    """A peer may be newer."""
    error = from_wire("brand_new", "It broke.", "Mend it.")
    assert (type(error), error.message, error.hint) == (IoaError, "It broke.", "Mend it.")
