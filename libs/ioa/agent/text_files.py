"""Reading the text files that come with a task, whoever wrote them."""

from __future__ import annotations

from pathlib import Path

from ioa.errors import InvalidInputError


def read_text(path: Path) -> str:
    r"""Return a file's text, with `\n` at the ends of its lines: UTF-8, else Windows-1252, which fits all Western files.

    Raises:
        InvalidInputError: It is empty, or no text.
    """
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip("\x00 \n\t"):
        raise InvalidInputError(f"{path.name} is empty.", hint="Send a file with text in it.")
    if "\x00" in text:
        raise InvalidInputError(f"{path.name} is not a text file.")
    return text
