"""`ioa demo`: a script that uses the command `ioa` as anybody would. It comes with the package, as do the examples it shows."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Never

import typer

import ioa
from ioa.cli.command import command
from ioa.errors import InvalidInputError, MissingExtraError

app = typer.Typer()


def examples() -> Path:
    """Return the folder of the examples: data of the package, or the repository's where it is used from its source."""
    packaged = Path(str(files(ioa))) / "examples"
    return packaged if packaged.is_dir() else Path(ioa.__file__).parents[2] / "examples"


def become_demo() -> Never:
    """Turn this process into the script of the demonstration.

    Raises:
        InvalidInputError: There is no bash.
        MissingExtraError: What the system or the examples need is not installed.
    """
    bash = shutil.which("bash")
    if bash is None:
        raise InvalidInputError("The demonstration is a script for bash, and there is none.", hint="Install bash.")
    for module in ("onnxruntime", "matplotlib"):  # of discovery and of the examples
        if find_spec(module) is None:
            raise MissingExtraError.of(module, "laptop")
    # The command that the script calls is the one of this very environment.
    path = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH"))))
    os.execve(bash, [bash, str(examples() / "demo.sh")], {**os.environ, "PATH": path})  # noqa: S606 - a script of our own


@command(app)
def demo() -> None:
    """Run the whole system here and real goals on a real file, show them live, and stop everything.

    Their files are in `out`. Requires the extra `laptop`.
    """
    become_demo()
