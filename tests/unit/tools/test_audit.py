"""What `make audit` makes of pip-audit's answers."""

from __future__ import annotations

import json

import pytest

from tools.audit import CLEAN, NOT_SCANNED, VULNERABLE, judge

_FINE = {"name": "rich", "version": "14.0.0", "vulns": []}
_BAD = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["1.1"], "aliases": []}]}
_UNKNOWN = {"name": "anyio", "skip_reason": "Dependency not found on PyPI and could not be audited: anyio (4.0)"}


@pytest.mark.parametrize(
    ("dependencies", "code"),
    [
        ([_FINE], CLEAN),
        ([_FINE, _BAD, _UNKNOWN], VULNERABLE),
        ([_FINE, _UNKNOWN], NOT_SCANNED),
        ([_UNKNOWN], NOT_SCANNED),
        ([], NOT_SCANNED),
    ],
)
def test_only_what_was_looked_up_is_clean(dependencies: list[dict[str, object]], code: int) -> None:
    """A dependency that the source of advisories does not know is not taken for one without vulnerabilities."""
    assert judge(json.dumps({"dependencies": dependencies, "fixes": []}), "").code == code


def test_vulnerability_is_reported_with_its_fix() -> None:
    """By name, version, advisory and the version to take."""
    audit = judge(json.dumps({"dependencies": [_BAD, _UNKNOWN]}), "")
    assert audit.vulnerable == ("old 1.0: PYSEC-2026-1, mended in 1.1",)
    assert audit.not_scanned == "the advisory source does not know 1 of 2 dependencies: anyio"
