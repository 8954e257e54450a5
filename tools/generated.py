"""Documents that are written by the code they describe: one command writes each, and tells whether the file is still current."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def write_or_check(module: str, description: str, file: str, render: Callable[[], str], arguments: list[str] | None) -> None:
    """Write a document, or with `--check` exit with 1 if the file is not what would be written.

    Args:
        module: What `python -m` runs to write it.
        description: What the command does.
        file: Where the document is by default.
        render: Makes its text.
        arguments: The command line; None is the process's own.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("file", nargs="?", type=Path, default=Path(file), help=f"the document, {file} by default")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is stale")
    options = parser.parse_args(arguments)
    document: Path = options.file
    current = document.read_text(encoding="utf-8") if document.exists() else ""
    if not options.check:
        document.write_text(render(), encoding="utf-8")
    elif current != render():
        raise SystemExit(f"{document} is stale. Write it again: python -m {module} {document}")
