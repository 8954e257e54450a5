"""Who asks, and what he may."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.errors import ForbiddenError
from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import UserId


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        key_id: By which key.
        user: Whose goals are launched by it.
        scopes: What it is for.
    """

    key_id: str
    user: UserId
    scopes: frozenset[Scope]

    def check(self, scope: Scope) -> None:
        """See that the caller may do something.

        Raises:
            ForbiddenError: The key is not for that.
        """
        if scope not in self.scopes:
            raise ForbiddenError(f"This key is not for {scope}.", hint=f"Make one with `ioa keys create --scope {scope}`.")


NOBODY = Caller("", UserId(""), frozenset())
"""Who asks where nobody has to say who it is."""
