"""Who asks, and what he may."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ioa.errors import ForbiddenError
from ioa.protocol.api_keys import ANYBODY, Scope
from ioa.protocol.ids import AgentId, GoalId, UserId
from ioa.protocol.team import is_seat, person_of


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        key_id: By which key.
        user: Whose goals are launched by it.
        scopes: What it is for.
        labels: Goals that he launches bear these, and he sees no others.
        people: As whom he may answer in teams, by name; `ANYBODY` stands for all.
        session: The cookie of its session; None if it has shown the key itself.
    """

    key_id: str
    user: UserId
    scopes: frozenset[Scope]
    labels: Mapping[str, str] = field(default_factory=dict)
    people: frozenset[str] = frozenset()
    session: str | None = field(default=None, repr=False)

    @property
    def owner(self) -> UserId | None:
        """The user whose goals the caller may read; None: goals of all users."""
        return None if {Scope.GOALS_READ, Scope.GOALS_READ_ALL} <= self.scopes else self.user

    def check(self, *scopes: Scope) -> None:
        """See that the caller may do something.

        Raises:
            ForbiddenError: The key is not for that.
        """
        missing = [scope for scope in scopes if scope not in self.scopes and not (scope is Scope.SEATS and self.people)]
        if missing:
            raise ForbiddenError(f"This key is not for {', '.join(missing)}.", hint=self._key_for(*missing))

    def answers_for(self, person: str) -> bool:
        """Whether the caller may answer as somebody."""
        return not self.people.isdisjoint((person, ANYBODY))

    def answers_for_any(self, agents: Iterable[str]) -> bool:
        """Whether one of these is the seat of somebody as whom the caller may answer."""
        return any(is_seat(AgentId(one)) and self.answers_for(person_of(AgentId(one))) for one in agents)

    def check_person(self, person: str) -> None:
        """See that the caller may answer as somebody.

        Raises:
            ForbiddenError: The key is not for that.
        """
        if not self.answers_for(person):
            scope = f"seats:{person}"
            raise ForbiddenError(f"This key is not for {scope}.", hint=self._key_for(scope))

    def _key_for(self, *more: str) -> str:
        """Say how a key is made that is for more than this one."""
        scopes = ",".join(dict.fromkeys((*sorted(self.scopes), *(f"seats:{one}" for one in sorted(self.people)), *more)))
        return f"Make one with `ioa keys create --name NAME --scope {scopes}`."

    def goal_id(self, entrance: str, *said: str) -> GoalId:
        """Derive a goal's id of who asks and what is said: said again it means the same goal, at whichever replica.

        Args:
            entrance: The letter that ids of this entrance begin with, so that those of two never meet.
            said: What tells one goal of this caller from all others.
        """
        parts = (self.key_id, *said)
        # What holds the mark between parts is written as a list, which no key's id begins like; all else as it always was.
        whole = json.dumps(parts) if any("|" in one for one in parts) else "|".join(parts)
        return GoalId(entrance + hashlib.sha256(whole.encode()).hexdigest()[:32])


NOBODY = Caller("", UserId(""), frozenset())
"""Who asks where nobody has to say who it is."""
