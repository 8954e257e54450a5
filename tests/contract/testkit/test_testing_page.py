"""The files of tests on docs/testing.md and docs/agents.md pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.readme_session import blocks_of

_DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.nightly
@pytest.mark.parametrize(("page", "tests"), [("testing.md", 16), ("agents.md", 3)])
def test_test_files_of_a_page_pass(page: str, tests: int, tmp_path: Path) -> None:
    """With pytest-asyncio, and without a warning."""
    for block in blocks_of((_DOCS / page).read_text(encoding="utf-8")):
        if found := re.match(r"# (\w+\.py)\n", block.body):
            (tmp_path / found[1]).write_text(block.body)
    options = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", "-o", "filterwarnings=error")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, f"{tests} passed" in done.stdout) == (0, True), done.stdout + done.stderr
