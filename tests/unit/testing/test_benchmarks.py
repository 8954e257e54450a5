"""CI runs every benchmark."""

from __future__ import annotations

from pathlib import Path

from benchmarks.smoke import RUN_BY, SMALLEST

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
