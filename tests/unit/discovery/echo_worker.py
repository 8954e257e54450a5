"""A worker that does what it is asked to, even if that is its end."""

from __future__ import annotations

import os

from ioa.errors import InvalidInputError
from ioa_discovery.workers.worker_loop import serve


class EchoServant:
    """Echoes, fails, prints or dies."""

    def __init__(self, state: object) -> None:
        self.state = state

    def answer(self, request: object) -> object:
        """Do as asked."""
        match request:
            case ("echo", value):
                return value
            case ("fail", _):
                return 1 / 0
            case ("print", text):
                return print(text)
            case _:
                os._exit(9)

    def close(self) -> None:
        """Do nothing."""


def opened(opening: object) -> EchoServant:
    """Open, or refuse."""
    if opening == "refuse":
        raise InvalidInputError("No such model.", hint="Name another.")
    return EchoServant(opening)


if __name__ == "__main__":
    serve(opened)
