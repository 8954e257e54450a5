"""A virtual environment of the packaging tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has the project installed."""

    folder: Path

    @property
    def scripts(self) -> Path:
        """Where its commands lie."""
        return self.folder / "bin"

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of its commands with warnings as errors, away from the checkout, and return how it ended and what it said."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("IOA_", "PYTHON", "COVERAGE"))},
            "PATH": f"{self.scripts}:/usr/bin:/bin",
            "PYTHONWARNINGS": "error",
            "NO_COLOR": "1",
        }
        return subprocess.run(
            [str(self.scripts / command[0]), *command[1:]],
            cwd=cwd or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, code: str, cwd: Path | None = None) -> str:
        """Run Python code and return what it printed; its failure fails the test."""
        done = self.run("python", "-c", code, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
