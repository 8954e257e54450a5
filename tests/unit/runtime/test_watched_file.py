"""Files that change while a process runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.errors import InvalidInputError
from ioa.runtime.watched_file import WatchedFile, lines


async def test_a_file_is_read_anew_when_it_has_changed(tmp_path: Path) -> None:
    """Who is revoked is so at once; a file that is gone for a moment lets nobody in again."""
    file = tmp_path / "revoked"
    file.write_text("")
    revoked = WatchedFile(file, lines)
    assert await revoked.said() == frozenset()
    file.with_name("new").write_text("eve\n\n mallory \n")
    file.with_name("new").replace(file)
    assert await revoked.said() == {"eve", "mallory"}
    file.unlink()
    assert await revoked.said() == {"eve", "mallory"}
    with pytest.raises(InvalidInputError, match="cannot be read"):
        WatchedFile(file, lines)
