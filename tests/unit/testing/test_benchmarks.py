"""No benchmark is left out of what CI runs, or says that all is well where it has measured nothing."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.smoke import RUN_BY, SMALLEST
from benchmarks.soak import Honest, Kept, Soaked, grown
from ioa.ports.inspection import FLOOD, REFUSED, SlowedCaller

ROOT = Path(__file__).parents[3]
_SENT = {"answered": 1}
_FLAT = (Kept(0, 0, 1), Kept(0, 0, 1))


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
    stood = Soaked(well, well, _SENT, {"ioa-router": 1.0}, {}, {}, _FLAT, slowed[1:])
    assert not list(stood.faults())
    faults = list(Soaked(ill, well, {}, {"ioa-router": 1.0}, {}, {}, _FLAT, slowed).faults())
    assert faults == [
        "mallory was kept out (flood), and did nothing then",
        "nothing was sent",
        "2 honest goals were not answered",
    ]


def test_what_a_soak_keeps_is_flat_once_it_was_long_enough() -> None:
    """Of goals that wait nobody says anything; the rest stays, but in the first minutes."""
    flat = (Kept(0, 0, 10_000_000), Kept(500_000_000, 9_000_000, 11_000_000))
    grown_more = (Kept(0, 0, 10_000_000), Kept(0, 0, 12_200_000))
    hour, short = Honest([0.1] * 3_600), Honest([0.1] * 100)
    found = [
        list(Soaked(short, honest, _SENT, {"nats-server": 1.0}, {}, {}, kept, []).faults())
        for honest, kept in ((hour, flat), (hour, grown_more), (short, grown_more))
    ]
    assert found == [[], ["what the store keeps grew 1.22 times"], []]


def test_what_a_process_holds_is_compared_once_it_has_settled() -> None:
    """What it takes at first does not count, nor what it holds for a moment; what grows until the end does."""
    settling = [*range(100, 200), *[200] * 300]
    assert grown(settling) == 1.0
    assert grown([*settling[:-1], 900]) == 1.0
    assert round(grown([*settling, *range(200, 300)]), 1) == 1.4
    assert grown([100]) == 1.0
