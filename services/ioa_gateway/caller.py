"""The authenticated caller of a request, with its permissions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ioa.errors import ForbiddenError
from ioa.protocol.ids import AgentId, GoalId, UserId
from ioa.protocol.operation.api_keys import ALL_PEOPLE, Scope, people_of
from ioa.protocol.teams.team_file import is_seat, person_of


@dataclass(frozen=True)
class Caller:
    """The authenticated caller of a request.

    Attributes:
        user: The user of the goals that it launches.
        labels: Labels of all goals that it launches. It cannot see goals without them.
        session: The cookie of its session; None if it sent the key.
    """

    key_id: str
    user: UserId
    scopes: Collection[str]
    labels: Mapping[str, str] = field(default_factory=dict)
    session: str | None = field(default=None, repr=False)

    @property
    def owner(self) -> UserId | None:
        """The user whose goals the caller may read; None: goals of all users."""
        return None if {Scope.GOALS_READ, Scope.GOALS_READ_ALL} <= set(self.scopes) else self.user

    @property
    def people(self) -> frozenset[str]:
        """The names of people that the caller may answer for; `ALL_PEOPLE` includes all."""
        return people_of(self.scopes)

    def check(self, *scopes: str) -> None:
        """Raise `ForbiddenError` if the caller's key lacks a scope. `Scope.SEATS` needs the scope of any person."""
        missing = [scope for scope in scopes if scope not in self.scopes and not (scope == Scope.SEATS and self.people)]
        if missing:
            hint = f"Make one with `ioa keys create --name NAME --scope {','.join([*self.scopes, *missing])}`."
            raise ForbiddenError(f"This key is not for {', '.join(missing)}.", hint=hint)

    def answers_for(self, person: str) -> bool:
        """Whether the caller may answer for a person."""
        return not self.people.isdisjoint((person, ALL_PEOPLE))

    def answers_for_any(self, agents: Iterable[str]) -> bool:
        """Whether one of these agents is the seat of a person that the caller may answer for."""
        return any(is_seat(AgentId(one)) and self.answers_for(person_of(AgentId(one))) for one in agents)

    def goal_id(self, entrance: str, *texts: str) -> GoalId:
        """Derive the id of a goal from the caller's key and some texts. It begins with the letter of the protocol, `entrance`."""
        digest = hashlib.sha256(json.dumps([self.key_id, *texts]).encode()).hexdigest()
        return GoalId(entrance + digest[:32])
