"""`ioa run`: its temporary folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from ioa.cli.run import _temporary_folder


def test_temporary_folder_is_removed_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder exists inside the block only."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _temporary_folder() as folder:
        (folder / "a" / "b").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []
