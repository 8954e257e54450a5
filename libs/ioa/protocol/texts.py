"""Text checks: rejects texts that cannot be stored, shortens long ones, and describes validation errors of pydantic."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ioa.errors import InvalidInputError

MAX_TEXT_CHARS = 256_000
"""Maximum characters of a text that arrives as JSON or from a command line."""
CUT = " […]"
"""End of a text that was cut."""
_PLACE_CHARS = 64


def shortened(text: str, max_bytes: int) -> str:
    """Cut a text that is too long, and replace characters that `check_text` rejects."""
    data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(data) > max_bytes:
        return data[: max_bytes - len(CUT.encode())].decode("utf-8", "ignore") + CUT
    return data.decode("utf-8")


def check_text(text: str) -> None:
    """Reject half of a surrogate pair, the character zero, and a text that is too long.

    Raises:
        InvalidInputError: The message shows the beginning of the text.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"The text {text[:80]!a} is not valid Unicode.") from None
    if "\0" in text:
        raise InvalidInputError(f"The text {text[:80]!a} holds the character zero.")
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInputError(
            f"The text {text[:80]!a} has {len(text):,} characters; {MAX_TEXT_CHARS:,} are allowed.",
            hint="Send large content as a file: it travels by reference.",
        )


def check_texts(value: object, where: str) -> None:
    """Check every text in plain data, keys of maps too.

    Args:
        value: Maps, lists, texts and other plain data.
        where: Name of the data; errors name the innermost key, or the place in its list.

    Raises:
        InvalidInputError: A text is rejected by `check_text`.
    """
    left = [(value, where)]
    while left:
        value, where = left.pop()
        match value:
            case str():
                try:
                    check_text(value)
                except InvalidInputError as error:
                    raise InvalidInputError(f"{where}: {error.message}", hint=error.hint) from None
            case list():
                left += [(one, f"{where}.{number}") for number, one in enumerate(value)]
            case dict():
                left += [(name, where) for name in value]
                left += [(one, str(name)[:_PLACE_CHARS]) for name, one in value.items()]


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
