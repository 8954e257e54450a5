"""`ioa run` with a system of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from ioa.cli.run import _temporary_folder
from tests.rig.hostile_folders import dig


def test_folders_in_each_other_go_with_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What code of an agent has left too deep for Python's stack ended the command with an error, and stayed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _temporary_folder() as folder:
        dig(folder)
    assert list(tmp_path.iterdir()) == []
