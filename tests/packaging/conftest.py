"""Environments as a user would make them: empty, with the project's wheel and nothing but what one extra asks for.

The versions are the locked ones, so that a release of somebody else's package fails no test here.
"""

from __future__ import annotations

import fcntl
import os
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
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked versions as pip's constraints, which carry no hashes: the wheel built below can have none."""
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
def wheels(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the project and of all that is installed here, made once for all processes of a test run.

    To read the indexes of eighty packages, with all their versions, takes pip longer than to install them.
    """
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "wheels"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            partial = shared.with_suffix(".partial")
            names = ("installer.txt", "laptop.txt", "image-service.txt")
            requirements = [f"--requirement={ROOT / 'requirements' / name}" for name in names]
            _pip("download", "--no-build-isolation", "--no-deps", "--require-hashes", "--dest", partial, *requirements)
            _pip("download", "--constraint", locked, "--dest", partial, "pytest")
            _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", partial, ROOT)
            partial.rename(shared)
    return shared


@pytest.fixture(scope="session")
def environment_with(wheels: Path, locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """Make an empty environment, install the wheel with the named extra ("" for none), and other packages, and return it."""

    def create(extra: str, *others: str) -> Environment:
        folder = tmp_path_factory.mktemp(f"with-{extra or 'nothing'}")
        venv.create(folder, symlinks=True)
        [built] = wheels.glob("internet_of_agents-*.whl")
        requirement = f"internet-of-agents{f'[{extra}]' if extra else ''} @ {built.as_uri()}"
        install: list[str | Path] = ["install", "--no-compile", "--no-index", "--find-links", wheels, "--constraint", locked]
        _pip("--python", folder / "bin" / "python", *install, requirement, *others)
        return Environment(folder)

    return create


@pytest.fixture(scope="session")
def bare(environment_with: Callable[..., Environment]) -> Environment:
    """An environment with the project and no extra."""
    return environment_with("")


@pytest.fixture(scope="session")
def with_pytest(environment_with: Callable[..., Environment]) -> Environment:
    """An environment with the project, pytest, and no extra."""
    return environment_with("", "pytest")
