"""Summaries of a speaker's own thoughts."""

from __future__ import annotations

MAX_THOUGHT_CHARS = 300


def shortened_thought(thought: str) -> str:
    """Return the beginning of a thought, in one line."""
    short = " ".join(thought.split())
    return f"{short[: MAX_THOUGHT_CHARS - 1]}…" if len(short) > MAX_THOUGHT_CHARS else short
