"""Cases of parametrised tests, from `tests/data`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "data"


def cases(name: str, folder: str = "policy") -> list[tuple[Any, ...]]:
    """Read the cases of a file, one a line, as the values of its objects."""
    lines = (_FOLDER / folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line).values()) for line in lines]
