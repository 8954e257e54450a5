"""What fails a test whose script and whose agent do not go together."""

from __future__ import annotations


class ScriptError(AssertionError):
    """A line of the script was refused, or what it waits for did not come. It is a failed assertion, so that pytest shows it so."""

    def __init__(self, what: str, *, hint: str = "", so_far: str = "") -> None:
        told = "\n".join(f"    {line}" for line in so_far.splitlines()) or "    (nothing)"
        super().__init__("\n".join(filter(None, (f"{what} {hint}".strip(), "So far in the group:", told))))
