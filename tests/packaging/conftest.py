"""Environments as a user would make them: empty, with the project's wheel and nothing but what one extra asks for.

The versions are the locked ones, so that a release of somebody else's package fails no test here and pip finds them in its cache.
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built as `pip install .` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    [built] = folder.glob("internet_of_agents-*.whl")
    return built


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked versions as pip's constraints, which carry no hashes: the wheel built above can have none."""
    lines = [
        line.removesuffix("\\").strip()
        for name in ("dev.txt", "torch.txt")
        for line in (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
        if re.match(r"[a-z0-9]", line)
    ]
    constraints = tmp_path_factory.mktemp("locked") / "constraints.txt"
    constraints.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return constraints


@pytest.fixture(scope="session")
def environment_with(wheel: Path, locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Make an empty environment, install the wheel with the named extra ("" for none) and return it."""

    def create(extra: str) -> Environment:
        folder = tmp_path_factory.mktemp(f"with-{extra or 'nothing'}")
        venv.create(folder, symlinks=True)
        requirement = f"internet-of-agents{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
        _pip("--python", folder / "bin" / "python", "install", "--no-compile", "--constraint", locked, requirement)
        return Environment(folder)

    return create


@pytest.fixture(scope="session")
def bare(environment_with: Callable[[str], Environment]) -> Environment:
    """An environment with the project and no extra."""
    return environment_with("")


@pytest.fixture(scope="session")
def with_pytest(environment_with: Callable[[str], Environment], locked: Path) -> Environment:
    """An environment with the project, pytest, and no extra."""
    environment = environment_with("")
    _pip("--python", environment.scripts / "python", "install", "--no-compile", "--constraint", locked, "pytest")
    return environment
