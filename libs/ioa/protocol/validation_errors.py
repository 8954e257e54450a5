"""Validation errors of pydantic as short texts."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_MAX_WHY_CHARS, _MAX_TEXT_CHARS, _PLACE_CHARS = 300, 1_000, 64


def in_words(error: ValidationError, whole: str, *, most: int = 1) -> str:
    """Describe errors in data, such as `limits.max_turns: Input should be a valid integer`.

    Args:
        error: The errors.
        whole: Name of the data, for an error that concerns no single field.
        most: Maximum number of errors in the text.
    """
    return "; ".join(f"{where or whole}: {why[:_MAX_WHY_CHARS]}" for where, why in problems_of(error)[:most])[:_MAX_TEXT_CHARS]


def problems_of(error: ValidationError) -> list[tuple[str, str]]:
    """Return the field, with dots, and the reason of each error."""
    found = error.errors(include_url=False, include_input=False)
    return [(".".join(str(part)[:_PLACE_CHARS] for part in one["loc"]), why_of(one)) for one in found]


def why_of(one: ErrorDetails) -> str:
    """Return the reason of an error."""
    if one["type"] == "too_long":
        limits = one["ctx"]
        return f"at most {limits['max_length']:,} items are allowed; it has {limits['actual_length'] or 'more'}"
    return one["msg"].removeprefix("Value error, ")
