"""How much of a process's memory what was decoded takes up, by how much it has encoded.

What is kept or held at once is bounded by this: strangers write it, and choose of what many small parts it is. The numbers are the
worst that were measured of each kind, rounded up; a test measures them again.
"""

from __future__ import annotations

STATE = 16
"""So many times as much a state, or an entry, takes up: 11 as it begins, 12 with 256 tasks of few words, 13 with 64 members."""
POLICY = 32
"""So many times as much a policy takes up: 24 of 128 nodes with one exit each, 29 with 22."""


def state_bytes(encoded: int) -> int:
    """Return what a state takes up that has so many bytes encoded."""
    return STATE * encoded


def policy_bytes(encoded: int) -> int:
    """Return what a policy takes up that has so many bytes encoded."""
    return POLICY * encoded
