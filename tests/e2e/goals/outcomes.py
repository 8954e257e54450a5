"""Running a goal and reading what came of it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from matplotlib import image

from ioa.client.client import Client
from ioa.group.events import Event, GroupLaunched, SubgroupOpened
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """What a goal came to."""

    result: GoalResult
    files: Mapping[str, bytes]
    groups: Mapping[CommId, Sequence[Event]]

    @property
    def text(self) -> str:
        """The conclusion."""
        return self.result.content

    def figures_of(self, key: str) -> list[float]:
        """The numbers on the lines of the conclusion that name `key`."""
        pattern = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)", re.IGNORECASE)
        return [figure for line in self.text.splitlines() if pattern.search(line) for figure in figures(line)]

    def states(self, figure: float) -> bool:
        """Whether the conclusion holds a number, to four digits."""
        return any(close(found, figure) for found in figures(self.text))

    def figures_match(self, truth: Mapping[str, float]) -> bool:
        """Whether the conclusion gives each key its number."""
        return all(any(close(found, value) for found in self.figures_of(key)) for key, value in truth.items())

    def pictures(self) -> list[tuple[int, ...]]:
        """The sizes of the PNG files, each of which was decoded."""
        return [image.imread(io.BytesIO(data), format="png").shape for name, data in self.files.items() if name.endswith(".png")]

    def page(self) -> str:
        """The text of the only HTML report, and nothing else in it."""
        [data] = [data for name, data in self.files.items() if name.endswith(".html")]
        return unescape(re.sub(r"<[^>]+>", " ", data.decode()))

    def pictures_in_page(self) -> int:
        """How many PNG files the HTML report embeds."""
        return sum(data.count(b"data:image/png;base64,") for name, data in self.files.items() if name.endswith(".html"))


def figures(text: str) -> list[float]:
    """All numbers in a text, thousands' commas left out."""
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text)]


def close(found: float, truth: float) -> bool:
    """Whether a number as written for people is the true one, to about four digits."""
    return abs(found - truth) <= max(abs(truth) * 5e-4, 5e-5)


async def run_goal(system: Client, goal: str, files: Sequence[Path] = (), *, led_by: str | None = None) -> Outcome:
    """Have a goal done and fetch all it produced, and check every group's log against the pure machine."""
    goal_id = await system.submit(GoalOrder(goal=goal, timeout=60, agent=AgentId(led_by) if led_by else None), files)
    result = await system.wait_for_result(goal_id)
    fetched = {artifact.name: await system.fetch(artifact) for artifact in result.artifacts}
    return Outcome(result, fetched, await replay_tree(system, result.comm_id))


async def replay_tree(system: Client, root: CommId) -> dict[CommId, Sequence[Event]]:
    """Read the logs of a group and of the teams nested in it, and check that every entry is what the pure machine says."""
    groups: dict[CommId, Sequence[Event]] = {}
    waiting = [root]
    while waiting:
        comm_id = waiting.pop(0)
        state: GroupState | None = None
        for stored in await system.group_entries(comm_id):
            state = step(state, stored.entry.event).state
            assert state == stored.entry.state, f"entry {stored.seq} of {comm_id} is not what the machine says"
            groups[comm_id] = (*groups.get(comm_id, ()), stored.entry.event)
        waiting += [event.subgroup for event in groups[comm_id] if isinstance(event, SubgroupOpened)]
    return groups


def members_of(events: Sequence[Event]) -> set[str]:
    """Who was launched into a group."""
    return {card.agent_id for event in events if isinstance(event, GroupLaunched) for card in event.charter.team_members}
