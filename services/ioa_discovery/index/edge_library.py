"""Qdrant's engine as a library, for those parts of discovery that run it; without it, the error that says what to install."""

from __future__ import annotations

try:
    import qdrant_edge as edge
except ImportError as error:
    from ioa.errors import MissingExtraError

    raise MissingExtraError.of("The in-process index", "discovery") from error

__all__ = ["edge"]
