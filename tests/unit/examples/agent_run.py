"""What running an agent's function comes to, for the tests of the example agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """What a task came to: its answer, and the bytes of its artifacts by name."""

    text: str
    files: dict[str, bytes]
    paths: tuple[Path, ...]


Run = Callable[..., Done]
