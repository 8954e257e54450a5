"""Removal of the data of ended goals."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Instruction, Model
from ioa.protocol.usage import MAX_COUNT


class Prune(Instruction):
    """Remove the data of goals that ended more than `older_than` ago, in a part of the stored goals.

    Attributes:
        after: Begin of the part: 0, or `after` of the previous reply.
        dry_run: Only count.
    """

    older_than: Annotated[timedelta, Field(ge=timedelta(0))]
    after: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    dry_run: bool = False


class Pruned(Model):
    """The removed data, or with `dry_run` the data to remove, of a part of the stored goals.

    Attributes:
        goals: Number of goals by the reason of their end, or `unknown`.
        groups: Number of their groups, including nested ones.
        files: Number of their input and result files.
        failed: Number of goals that could not be removed completely; the next removal continues them.
        after: Begin of the next part; None if there is none.
    """

    goals: dict[str, int] = Field(default_factory=dict)
    groups: int = 0
    files: int = 0
    failed: int = 0
    after: int | None = None
