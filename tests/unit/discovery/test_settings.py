"""What discovery is told by its environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.errors import InvalidInputError
from ioa.runtime.settings import settings_from
from ioa_discovery.settings import DiscoverySettings


def test_the_key_of_qdrant_may_lie_in_a_file(tmp_path: Path) -> None:
    """Where no environment shows it; a file that is not there is said to be missing, and which variable names it."""
    (tmp_path / "key").write_text("a-key\n", encoding="ascii")
    told = {name: settings_from(DiscoverySettings, {"IOA_QDRANT_API_KEY_FILE": str(tmp_path / name)}) for name in ("key", "none")}
    with pytest.raises(InvalidInputError, match="IOA_QDRANT_API_KEY_FILE"):
        told["none"].qdrant_key()
    assert told["key"].qdrant_key() == "a-key"
