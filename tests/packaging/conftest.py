"""Environments as a user creates them: empty, then with the project's wheel and the packages of an extra.

The versions are the locked ones, so that a new release of a dependency fails no test here.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _uv(*arguments: str | Path) -> None:
    _run(Path(sys.executable).with_name("uv"), "--quiet", *arguments)


def _pip(*arguments: str | Path) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the locked versions as constraints of pip."""
    constraints = tmp_path_factory.mktemp("locked") / "constraints.txt"
    _uv("export", "--frozen", "--no-hashes", "--no-emit-project", "--all-extras", "--output-file", constraints)
    return constraints


@pytest.fixture(scope="session")
def wheels(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheels of the project and of all packages that the tests install, made once for all workers.

    Without it, pip reads the indexes of eighty packages for each environment, which takes longer than the installation.
    """
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "wheels"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            partial = shared.with_suffix(".partial")
            extras = [f"--extra={extra}" for extra in ("laptop", "authcallout", "a2a", "mcp")]
            requirements = folder / "requirements.txt"
            _uv("export", "--frozen", "--no-dev", "--no-emit-project", *extras, "--output-file", requirements)
            _pip("wheel", "--no-deps", "--require-hashes", "--wheel-dir", partial, "--requirement", requirements)
            _pip("download", "--constraint", locked, "--dest", partial, "pytest", f"uv=={version('uv')}")
            _uv("build", "--wheel", "--out-dir", partial, ROOT)
            partial.rename(shared)
    return shared


@pytest.fixture(scope="session")
def environment_with(wheels: Path, locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """Return a function that makes an environment with the wheel, the named extra ("" for none), and other packages."""

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
