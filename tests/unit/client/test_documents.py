"""JSON documents: members may be added, but not removed."""

from __future__ import annotations

import json

import pytest

from tests.unit.client.golden_documents import FOLDER, documents


@pytest.mark.parametrize("name", documents())
def test_documents_of_recorded_objects_equal_the_record(name: str) -> None:
    """Programs depend on them. `python -m tests.unit.client.golden_documents` writes the records."""
    assert documents()[name] == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
