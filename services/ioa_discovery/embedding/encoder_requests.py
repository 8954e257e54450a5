"""What discovery asks of the processes that embed, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Load a model: a folder, a hub id, or the one that comes with discovery if it is empty.

    `vectors_file` is where vectors are kept that are to be; empty: nowhere.
    """

    model: str
    vectors_file: str = ""


@dataclass(frozen=True, slots=True)
class ModelState:
    """What was loaded."""

    model_id: str
    dimension: int


class EncodeTexts(NamedTuple):
    """Return the vectors of the first texts, as the bytes of 32-bit floats; with `keep` those that were kept, and keep the others.

    Of as many texts as take no longer than one long text, of one at least: whoever asks comes again for the rest, behind others.
    A tuple, which is pickled faster than a frozen dataclass.
    """

    texts: Sequence[str]
    keep: bool = False
