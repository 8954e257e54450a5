"""The checks of the conftest fail a faulty test."""

from __future__ import annotations

from pathlib import Path

import pytest

_OFFENDERS = """
import asyncio
import time

tasks = []

async def test_blocks_the_loop():
    time.sleep(2)  # long enough to be seen on a machine that is busy, too

async def test_leaves_a_task():
    tasks.append(asyncio.create_task(asyncio.sleep(60)))

async def test_drops_an_exception():
    async def fail():
        raise ValueError("nobody asks")
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    del task

async def test_behaves():
    await asyncio.create_task(asyncio.sleep(0.3))

def test_needs_no_loop():
    pass
"""


@pytest.mark.nightly
def test_conftest_fails_each_faulty_test(pytester: pytest.Pytester) -> None:
    """A blocked loop, a running task and an unretrieved exception each fail their test only."""
    tests = Path(__file__).parents[2]
    modes = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    pytester.makeini(f"[pytest]\n{modes}pythonpath = {tests.parent}\n")
    pytester.makeconftest((tests / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(_OFFENDERS)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    failed = {line.split("::")[1].split()[0] for line in result.outlines if line.startswith("ERROR test_")}
    assert (failed, result.parseoutcomes()["passed"]) == (
        {"test_blocks_the_loop", "test_leaves_a_task", "test_drops_an_exception"},
        5,
    )
