"""Teams that are written in Python: the same data as in a team file, which a written one reads back to.

team = Team("debate", goal="Should the city close its centre to cars?")
pro, con, chair = team.roles(pro="debater-1", con="debater-2", chair="debater-3")
team.node("debate", [pro, con], opens=(pro, "I open the case."), max=6).then("verdict")
team.node("verdict", [chair])
result = await team.run()
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ioa.protocol.goals import GoalResult
from ioa.protocol.policy_check import PolicyFinding
from ioa.protocol.team import TeamSpec, document_of, team_of, to_toml
from ioa.protocol.team_check import check_team


class TeamFields(TypedDict, total=False):
    """What a team may say besides its name, as at the top of a team file."""

    goal: str
    max_turns: int
    leader: str
    ends: Literal["leader", "last"]
    seed: int
    silent: Literal["skip", "end"]
    heard_by: Literal["all", "node", "leader"]
    watchers: Sequence[Mapping[str, Any]]


class RoleFields(TypedDict, total=False):
    """Who fills a role, and what it is told, as in a team file."""

    agent: str
    agents: Sequence[str]
    need: str
    count: int
    prompt: str
    at_most: int
    timeout: float
    secret: bool
    hears_all: bool
    memory: Mapping[str, Any]
    human: bool | str
    silent: str


class NodeFields(TypedDict, total=False):
    """What a node may say besides its name, its roles and its exits, as in a team file.

    `opens` is the role that speaks first, or that and its words.
    """

    turns: str | Mapping[str, Any]
    opens: str | tuple[str, str]
    prompt: str
    max: int
    again: Literal["anew", "continue"]
    visits: int
    form: Mapping[str, str | Mapping[str, Any]]
    asked: Literal["round", "turn"]
    heard_by: str | Sequence[str] | Mapping[str, str | Sequence[str]]
    guards: Sequence[str | Mapping[str, Any]]
    review: str | Mapping[str, Any]
    take: Literal["one", "all"]
    join: Literal["any", "all"]
    writes: Sequence[str]
    asks: bool
    invites: bool
    tasks: bool


class TeamNode:
    """A node of a team that is being written. A node without exits leads to the end."""

    def __init__(self, exits: list[Mapping[str, Any]]) -> None:
        self._exits = exits

    def then(self, *targets: str) -> TeamNode:
        """Lead on to other nodes, or to `end`, when the turns of this one are over; the first that is open."""
        self._exits += [{"to": to} for to in targets]
        return self

    def exit(
        self, to: str, *, by: str = "rule", when: Mapping[str, Any] | None = None, remove: Mapping[str, Any] | None = None
    ) -> TeamNode:
        """Lead on to another node, or to `end`, by a rule whose condition holds, or as `by` chooses: the `speaker`, or a role."""
        more = {"when": when, "remove": remove}
        self._exits.append({"to": to, "by": by, **{name: dict(value) for name, value in more.items() if value is not None}})
        return self


class Team:
    """A team with a policy: who takes part, who speaks when, and what leads on.

    Fields are those of a team file, which `docs/policies.md` lists. Nothing is checked before `check`, `write`, `run` or `spec`.

    Args:
        name: What it is called.
        **fields: What else stands at the top of a team file, such as the goal.
    """

    def __init__(self, name: str, **fields: Unpack[TeamFields]) -> None:
        self._top: dict[str, Any] = {"team": name, **fields}
        self._roles: dict[str, Mapping[str, Any]] = {}
        self._nodes: list[Mapping[str, Any]] = []

    def roles(self, **agents: str) -> tuple[str, ...]:
        """Add roles that are filled by an agent or a pool each, and return their names."""
        return tuple([self.role(name, agent=agent) for name, agent in agents.items()])

    def role(self, name: str, **fields: Unpack[RoleFields]) -> str:
        """Add a role, or say it anew, and return its name."""
        self._roles[name] = fields
        return name

    def node(self, name: str, roles: Sequence[str], **fields: Unpack[NodeFields]) -> TeamNode:
        """Add a node, in which these roles speak. The first node is entered first."""
        exits: list[Mapping[str, Any]] = []
        told: dict[str, Any] = {"name": name, "roles": list(roles), **fields, "exits": exits}
        opens = fields.get("opens")
        if isinstance(opens, str):
            told["opens"] = {"role": opens}
        elif opens is not None:
            told["opens"] = dict(zip(("role", "say"), opens, strict=True))
        self._nodes.append(told)
        return TeamNode(exits)

    @property
    def spec(self) -> TeamSpec:
        """The team as programs publish it with a goal.

        Raises:
            TeamError: It says all that is wrong.
        """
        nodes = [{name: value for name, value in node.items() if name != "exits" or value} for node in self._nodes]
        return team_of({**self._top, "roles": self._roles, "nodes": nodes})

    def check(self) -> tuple[PolicyFinding, ...]:
        """Return what is worth a thought.

        Raises:
            TeamError: It says all that is wrong.
        """
        return check_team(self.spec)

    def write(self, file: str | Path) -> None:
        """Write a team file, TOML or JSON by its name, which `ioa team` reads.

        Raises:
            TeamError: It says all that is wrong.
        """
        spec, path = self.spec, Path(file)
        text = json.dumps(document_of(spec), indent=2) + "\n" if path.suffix == ".json" else to_toml(spec)
        path.write_text(text, encoding="utf-8")

    async def run(
        self, goal: str | None = None, *, files: Sequence[Path] = (), timeout: timedelta | None = None, url: str | None = None
    ) -> GoalResult:
        """Publish the goal with the team on the system that runs, and wait for the result.

        Args:
            goal: What the team works at; its own goal by default.
            files: What comes along with the goal.
            timeout: How long the goal may take; an hour by default.
            url: Where NATS is; by default the system in reach, as for `ioa.connect`.

        Raises:
            TeamError: It says all that is wrong.
            InvalidInputError: There is no goal, or a file cannot be read.
            UnavailableError: The system cannot be reached.
        """
        # Here, so that writing a team loads nothing that speaks to a system.
        from ioa.hosting.connecting import connect
        from ioa.protocol.goal_order import order_of

        spec = self.spec
        seconds = None if timeout is None else timeout.total_seconds()
        order = order_of(spec.goal if goal is None else goal, team=spec, timeout=seconds)
        async with connect(url) as client:
            return await client.run(order, files)
