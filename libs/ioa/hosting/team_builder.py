"""Teams that are written in Python: the same data as in a team file.

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
from typing import Any

from ioa.protocol.goals import GoalResult
from ioa.protocol.teams.team_file import TeamSpec, document_of, team_of, to_toml


class TeamNode:
    """A node of a team that is being written. A node without exits leads to the end."""

    def __init__(self, exits: list[Mapping[str, Any]]) -> None:
        self._exits = exits

    def then(self, *targets: str) -> TeamNode:
        """Continue with the first of these nodes (or `end`) that is open, when the turns of this node are over."""
        self._exits += [{"to": to} for to in targets]
        return self

    def exit(self, to: str, **fields: Any) -> TeamNode:
        """Continue with a node (or `end`): with `when`, by a rule with this condition; with `by`, by a choice of a role."""
        self._exits.append({"to": to, **fields})
        return self


class Team:
    """A team with a policy: its roles, and the order in which they speak.

    The fields are described with team files (`docs/policies.md`). Nothing is checked before `write`, `run` or `spec`.

    Args:
        name: The name of the team.
        **fields: The other fields at the top of a team file, such as the goal.
    """

    def __init__(self, name: str, **fields: Any) -> None:
        self._file: dict[str, Any] = {"team": name, **fields, "roles": {}, "nodes": []}

    def roles(self, **agents: str) -> tuple[str, ...]:
        """Add roles that are filled by an agent or a pool each, and return their names."""
        return tuple([self.role(name, agent=agent) for name, agent in agents.items()])

    def role(self, name: str, **fields: Any) -> str:
        """Add a role, or replace it, and return its name. A role has the same fields as in a team file."""
        self._file["roles"][name] = fields
        return name

    def node(self, name: str, roles: Sequence[str], **fields: Any) -> TeamNode:
        """Add a node in which these roles speak. The first node is entered first.

        A node has the same fields as in a team file. `opens` is the role that speaks first, or a pair of this role and its words.
        """
        if opens := fields.get("opens"):
            fields["opens"] = {"role": opens} if isinstance(opens, str) else dict(zip(("role", "say"), opens, strict=True))
        exits: list[Mapping[str, Any]] = []
        self._file["nodes"].append({"name": name, "roles": [*roles], **fields, "exits": exits})
        return TeamNode(exits)

    @property
    def spec(self) -> TeamSpec:
        """The team as programs publish it with a goal. A `TeamError` lists all mistakes."""
        nodes = [{name: value for name, value in node.items() if name != "exits" or value} for node in self._file["nodes"]]
        return team_of({**self._file, "nodes": nodes})

    def write(self, file: str | Path) -> None:
        """Write a team file for `ioa team`: JSON if its name ends with `.json`, otherwise TOML."""
        spec, path = self.spec, Path(file)
        text = json.dumps(document_of(spec), indent=2) + "\n" if path.suffix == ".json" else to_toml(spec)
        path.write_text(text, encoding="utf-8")

    async def run(
        self, goal: str | None = None, *, files: Sequence[Path] = (), timeout: timedelta | None = None, url: str | None = None
    ) -> GoalResult:
        """Publish the goal with the team on the system that runs, and wait for the result.

        Args:
            goal: The goal. Default: the team's own goal.
            files: The files of the goal.
            timeout: The time until the deadline of the goal. Default: an hour.
            url: Where NATS is; by default the system in reach, as for `ioa.connect`.

        Raises:
            TeamError: The team is not valid; the error lists all mistakes.
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
