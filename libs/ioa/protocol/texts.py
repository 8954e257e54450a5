"""Text checks: rejects texts that cannot be stored, and shortens long ones."""

from __future__ import annotations

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
