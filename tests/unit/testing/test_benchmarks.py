"""No benchmark is left out of what CI runs, or says that all is well where it has measured nothing."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.smoke import RUN_BY, SMALLEST
from benchmarks.soak import Honest, Soaked
from ioa.ports.inspection import FLOOD, REFUSED, SlowedCaller

ROOT = Path(__file__).parents[3]


def test_every_benchmark_has_a_smallest_form_that_ci_runs() -> None:
    """Each module of benchmarks/ that is a command is run by `make bench-smoke`, or by one that is, and CI makes that."""
    commands = {
        file.stem
        for file in (ROOT / "benchmarks").glob("*.py")
        if '__name__ == "__main__"' in file.read_text(encoding="utf-8") and file.stem != "smoke"
    }
    started_by = {name: (ROOT / "benchmarks" / f"{by}.py").read_text(encoding="utf-8") for name, by in RUN_BY.items()}
    assert commands == SMALLEST.keys() | RUN_BY.keys()
    assert [name for name, text in started_by.items() if name not in text or RUN_BY[name] not in SMALLEST] == []
    assert "make bench-smoke" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_a_soak_in_which_somebody_was_kept_out_or_nothing_went_well_before_is_none() -> None:
    """Who is kept out does nothing, and beside goals that were never answered none is late."""
    well, ill = Honest([0.1] * 100), Honest([0.1] * 98 + [math.inf] * 2)
    slowed = [SlowedCaller("mallory", FLOOD, 20_000), SlowedCaller("eve", REFUSED, 3)]
    stood = Soaked(well, well, {}, {"ioa-router": 1.0}, {}, {}, (0, 0), slowed[1:])
    assert not list(stood.faults())
    faults = list(Soaked(ill, well, {}, {"ioa-router": 1.0}, {}, {}, (0, 0), slowed).faults())
    assert faults == ["mallory was kept out (flood), and did nothing then", "2 honest goals were not answered"]
