"""Every adapter keeps the same ten promises. `tests.frameworks` tests adapters to frameworks with the real ones."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from ioa import adopt
from ioa.testing.conformance import CASES, Case
from tests.contract.adopt.rows import LACKS, ROWS
from tests.frameworks.test_frameworks import FRAMEWORKS


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("row", ROWS)
async def test_adapter_keeps_its_promises(row: str, case: Case, tmp_path: Path) -> None:
    """Task, steps and answer of the foreign agent are passed on.

    A case that a protocol cannot support must fail.
    """
    lacks = pytest.raises(AssertionError) if case.name in LACKS.get(row, ()) else nullcontext()
    with ROWS[row](tmp_path) as agent, lacks:
        await case.check(agent, tmp_path)


def test_every_adapter_has_its_row() -> None:
    """A name of `ioa.adopt` has a row here, or a real framework in `tests.frameworks`."""
    assert ROWS.keys() | FRAMEWORKS.keys() == set(adopt.__all__)
    assert LACKS.keys() <= ROWS.keys()
