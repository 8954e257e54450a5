"""`python -m ioa.cli` is the command `ioa`."""

from __future__ import annotations

from ioa.cli.main import app

if __name__ == "__main__":
    app()
