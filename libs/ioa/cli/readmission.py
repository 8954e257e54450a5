"""Letting in again who was kept out for a flood: `ioa credentials readmit`."""

from __future__ import annotations

from pydantic import ValidationError

from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.protocol.codec import in_words
from ioa.protocol.kept_out import Readmit


async def readmit(url: str | None, name: str, terminal: Terminal) -> None:
    """Have every registry forget that somebody has flooded.

    Raises:
        InvalidInputError: The name is none.
        UnavailableError: No registry keeps anybody out.
        ForbiddenError: Who asks is no admin.
    """
    try:
        request = Readmit(name=name)
    except ValidationError as error:
        raise InvalidInputError(f"This is no name: {in_words(error, 'name')}.") from None
    async with open_reached_system(url) as system:
        await system.readmit(request)
    if terminal.as_json:
        terminal.document({"readmitted": request.name})
    else:
        terminal.note(f"{request.name} is kept out no more")
