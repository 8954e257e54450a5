"""The keys by which programs come in by HTTP, and what each may do."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """One thing that a key may be for."""

    GOALS_READ = "goals:read"
    """See goals, groups and all that was said in them."""
    GOALS_WRITE = "goals:write"
    """Launch goals, and cancel those of the key's own user."""
    AGENTS_READ = "agents:read"
    """See who there is, and search among them."""
