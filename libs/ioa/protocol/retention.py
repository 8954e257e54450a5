"""Removing what is kept of goals that have ended: the request for it, and what went."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Instruction, Model
from ioa.protocol.usage import MAX_COUNT


class Prune(Instruction):
    """Remove what is kept of goals that ended longer than `older_than` ago, from one part of the goals on record.

    Attributes:
        after: Where the part begins: 0, or what the answer before it said.
        dry_run: Only count what would go.
    """

    older_than: Annotated[timedelta, Field(ge=timedelta(0))]
    after: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    dry_run: bool = False


class Pruned(Model):
    """What went, or would go, of one part of the goals on record.

    Attributes:
        goals: How many goals, by the reason they ended for; `unknown` if nothing tells any more.
        groups: Their groups, nested ones too.
        files: Their input and result files.
        failed: Goals that could not be removed whole. What is left of them goes the next time.
        after: Where to go on; None when there is no more.
    """

    goals: dict[str, int] = Field(default_factory=dict)
    groups: int = 0
    files: int = 0
    failed: int = 0
    after: int | None = None
