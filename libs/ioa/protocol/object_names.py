"""Folders of stored files: the first part of an object name."""

from __future__ import annotations

import hashlib

_DIGITS = 32


def folder_of(owner: str) -> str:
    """Return the folder of the files of a goal (by its key) or of a group (by its `comm_id`). It does not reveal the owner."""
    return hashlib.sha256(f"files of {owner}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
