"""The error of a scripted test."""

from __future__ import annotations


class ScriptError(AssertionError):
    """A line of the script was rejected, or an expected event did not arrive. pytest shows it as a failed assertion."""

    def __init__(self, what: str, *, hint: str = "", so_far: str = "") -> None:
        told = "\n".join(f"    {line}" for line in so_far.splitlines()) or "    (nothing)"
        super().__init__("\n".join(filter(None, (f"{what} {hint}".strip(), "So far in the group:", told))))
