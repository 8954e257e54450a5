"""Where files lie in the object store.

Agents see the names of all files, so a name tells neither whose goal or group the file belongs to nor what the file is called. It
follows from both, so that a file which is stored again lies where it did, and goes with its goal.
"""

from __future__ import annotations

import hashlib

_DIGITS = 32


def folder_of(owner: str) -> str:
    """Return where the files of a goal's user (the goal's key), or of a group (its `comm_id`), lie."""
    return _digest(f"files of {owner}")


def object_name(owner: str, *place: str) -> str:
    """Return the name of one of their files, which stands at this place among them."""
    return f"{folder_of(owner)}/{_digest('/'.join((owner, *place)))}"


def folder_in(name: str) -> str:
    """Return in which folder a name that `object_name` gave says that its file lies; of another name its beginning."""
    return name[:_DIGITS]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
