"""Every adapter keeps the same ten promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.testing.conformance import CASES, Case
from tests.unit.adopt.rows import LACKS, ROWS


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("row", ROWS)
async def test_an_adapter_keeps_its_promises(row: str, case: Case, tmp_path: Path) -> None:
    """Whatever an agent is written in: what is asked of it, and what it does and says, comes through."""
    if case.name in LACKS.get(row, ()):
        pytest.skip(LACKS[row][case.name])
    with ROWS[row](tmp_path) as agent:
        await case.check(agent, tmp_path)
