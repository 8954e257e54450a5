"""Cases of parametrised tests, from `tests/data/policy`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "data" / "policy"


def cases(name: str) -> list[tuple[Any, ...]]:
    """Read the cases of a file, one a line, as the values of its objects."""
    lines = (_FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line).values()) for line in lines]
