"""Measure what a policy costs a group: each number that its design sets an aim for, beside a free group in the same run.

    python -m benchmarks.policies [--games 10] [--runs 150] [--tasks 4000] [--turns 4000] [--rounds 4]

The policies are those that ship, cast with the agents that their files name; their members say at random what they are offered. All
but the last rows need no server. Those are of the router: silent members on the wire, as in `benchmarks.turns`, in a free group,
under a policy that all hear, and under one of secret roles, where each member has a view of its own.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, open_parts, run
from benchmarks.silent_groups import open_silent_groups
from benchmarks.turns import parts_of
from ioa.group.events import Entry, Said, encode_entry
from ioa.group.machine import step
from ioa.group.policy.visibility import seen_by
from ioa.group.state import GroupState
from ioa.protocol.codec import encode_value
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.policy import Policy
from ioa.protocol.teams.team_file import TeamSpec, read_toml
from tests.unit.group.scenario import Scenario, launched, launched_under
from tests.unit.group.test_policy_laws import added_bytes
from tests.unit.group.test_policy_laws import run as played
from tests.unit.protocol.policies import SHIPPED

_MEMBERS = 4
_TASKS_BEFORE = 40
_WARM_UP_TURNS, _MOST_TURNS = 200, 10_000
MOST_FREE_STEP_US, MOST_STEP_US, MOST_VIEW_US, MOST_TURN_MS = 13, 20, 35, 0.4
MOST_ADDED, MOST_POLICY, MOST_FIRINGS, MOST_GROWTH = 420, 3_072, 33, 100
"""The aims of the design."""

_LED: Mapping[str, Policy | None] = {
    "free": None,
    "under a policy": Policy.model_validate(
        {
            "roles": [{"name": "talks"}],
            "nodes": [{"name": "talk", "roles": ["talks"], "turns": {"mode": "nominate"}, "max": _MOST_TURNS}],
        }
    ),
    "under one of secret roles": Policy.model_validate(
        {
            "roles": [{"name": f"r{number}", "secret": True} for number in range(_MEMBERS)],
            "nodes": [
                {"name": "talk", "roles": [f"r{n}" for n in range(_MEMBERS)], "turns": {"mode": "nominate"}, "max": _MOST_TURNS}
            ],
        }
    ),
}
"""What leads the groups of the router's rows: who speaks next is named in each, so that all say the same."""
_TASKS = Policy.model_validate(
    {"roles": [{"name": "lead"}, {"name": "worker"}], "nodes": [{"name": "work", "roles": ["lead"], "tasks": True}]}
)


class Row(NamedTuple):
    """A number: what was measured, what was aimed at, and whether that is met; None where the aim is of another row."""

    number: str
    measured: str
    aim: str
    is_met: bool | None = None


class Spoken(NamedTuple):
    """A message or decision, and the group that it was said in."""

    state: GroupState
    said: Said
    policy: Policy | None


def teams() -> Iterator[tuple[str, TeamSpec]]:
    """Read each team that ships, with the name of its file."""
    for file in sorted(SHIPPED.glob("*.toml")):
        yield file.stem, read_toml(file.read_text(encoding="utf-8"))


def as_filed(team: TeamSpec) -> Scenario:
    """Open a group of a team with the agents that its file names; who leads owns it."""
    cast = {filling.role: filling.names for filling in team.fillings}
    everybody = dict.fromkeys([*cast[team.leader.role], *(agent for held in cast.values() for agent in held)])
    return launched_under(team.policy, cast, *everybody, max_turns=team.max_turns)


def game(story: Scenario, seed: int) -> list[Scenario]:
    """Play a group to its end, each event chosen at random."""
    return list(played(story, random.Random(seed).choice))


def spoken(games: Iterable[Sequence[Scenario]]) -> Iterator[Spoken]:
    """Find what was said and decided in games, each where it was taken."""
    for before, after in (pair for one in games for pair in pairwise(one)):
        event = after.log[-1]
        if isinstance(event, Said) and isinstance(event.message.payload, Discussion | Decision):
            yield Spoken(before.state, event, before.policy)


def free_game(turns: int) -> Iterator[Scenario]:
    """Let as many members talk in a free group, in turn."""
    names = [f"agent-{number}" for number in range(_MEMBERS)]
    story = launched(*names, max_turns=turns + 1)
    yield story
    for turn in range(1, turns + 1):
        story = story.says(names[(turn - 1) % _MEMBERS], to=names[turn % _MEMBERS])
        yield story


def fastest(call: Callable[[], object], runs: int) -> float:
    """Return how many microseconds a call takes in the fastest of some runs."""
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best * 1e6


def step_rows(games: Sequence[Sequence[Scenario]], runs: int) -> Iterator[Row]:
    """Time each message under the policies, and in a free group."""
    led, free = list(spoken(games)), list(spoken([list(free_game(30))]))
    taken, beside = (
        [fastest(lambda one=one: step(one.state, one.said, one.policy), runs) for one in some]  # type: ignore[misc]
        for some in (led, free)
    )
    mean, free_mean = statistics.mean(taken), statistics.mean(beside)
    by_hearing = defaultdict[str, list[float]](list)
    for one, us in zip(led, taken, strict=True):
        by_hearing["not all hear all" if one.policy and one.policy.hides else "all hear all"].append(us)
    split = ", ".join(f"{statistics.mean(some):.0f} where {where}" for where, some in sorted(by_hearing.items()))
    free_aim = f"{MOST_FREE_STEP_US} µs", free_mean <= MOST_FREE_STEP_US
    yield Row("step, free", f"{free_mean:.1f} µs of {len(beside)} messages", *free_aim)
    yield Row("step, under a policy", f"{mean:.1f} µs of {len(taken)}; {split}", f"{MOST_STEP_US} µs", mean <= MOST_STEP_US)


def size_rows(games: Sequence[Sequence[Scenario]], specs: Mapping[str, TeamSpec], tasks: int) -> Iterator[Row]:
    """Weigh what the policies add to states, the policies, and states after tasks."""
    added = max(added_bytes(here) for one in games for here in one)
    yield Row("added to a state", f"{added} bytes at most", f"{MOST_ADDED}", added <= MOST_ADDED)
    size, name = max((len(encode_value(team.policy.model_dump(mode="json"))), name) for name, team in specs.items())
    yield Row("a policy", f"{size:,} bytes at most ({name})", f"{MOST_POLICY:,}", size <= MOST_POLICY)
    few, many = (_state_after(count) for count in (_TASKS_BEFORE, tasks))
    told = f"{many:,} bytes; {few:,} after {_TASKS_BEFORE}"
    yield Row(f"a state after {tasks:,} tasks", told, f"{MOST_GROWTH} bytes more", many - few <= MOST_GROWTH)


def _state_after(tasks: int) -> int:
    """Weigh an entry of a group under a policy in which so many tasks were given out, one after the other, and done."""
    story = launched_under(_TASKS, {"lead": ["ada"], "worker": ["bob"]}, "ada", "bob", max_turns=2 * tasks + 2)
    for _ in range(tasks):
        name = f"t{story.state.turn}-x"
        story = story.assigns_and_waits("ada", f"{name}:bob").finishes(name)
        event, story = story.log[-1], Scenario(story.state, (), policy=story.policy)
    return len(encode_entry(Entry(event=event, state=story.state, audience=())).data)


def view_rows(games: Sequence[Sequence[Scenario]], runs: int) -> Iterator[Row]:
    """Time what makes a member's view of a state."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for policy, here in ((here.policy, here) for one in games for here in one):
        if policy is None:
            continue
        for agent in here.state.hearing:
            took[policy.hides].append(fastest(lambda: seen_by(policy, here.state, agent), runs))  # noqa: B023 - called at once
    for hides, where in ((True, "scoped"), (False, "public")):
        mean, most = statistics.mean(took[hides]), max(took[hides])
        aim = f"{MOST_VIEW_US} µs" if hides else "none"
        yield Row(f"a view, {where}", f"{mean:.1f} µs, {most:.0f} at most", aim, mean <= MOST_VIEW_US if hides else None)


def end_row(specs: Mapping[str, TeamSpec]) -> Row:
    """Count what firings it takes until groups end in which nobody says anything."""
    firings = {}
    for name, team in specs.items():
        story, count = as_filed(team), 0
        while not story.state.phase.is_terminal:
            story, count = story.timer(), count + 1
        firings[name] = count
    most = max(firings, key=lambda name: firings[name])
    return Row(
        "an end by timers alone", f"{firings[most]} firings at most ({most})", f"{MOST_FIRINGS}", firings[most] <= MOST_FIRINGS
    )


def hearing_rows(specs: Mapping[str, TeamSpec], games: int) -> Iterator[Row]:
    """Count how many of the other members hear a message in a team that hides something."""
    for name, team in specs.items():
        if not team.policy.hides:
            continue
        told = possible = 0
        for before, event, policy in spoken(game(as_filed(team), seed) for seed in range(games)):
            taken = step(before, event, policy)
            others = {member.agent_id for member in before.members} - {event.message.header.sender}
            possible += len(others)
            told += len(others.intersection(taken.audience))
        yield Row(f"messages heard, {name}", f"{told / possible:.0%} of all", "")


async def router_rows(turns: int, rounds: int) -> list[Row]:
    """Let silent members talk through a router, in each kind of group by turns; the median of what its rounds took."""
    took = defaultdict[str, list[float]](list)
    async with open_parts(ioa_router=1) as parts:
        for count in (_WARM_UP_TURNS, *(turns,) * rounds):
            for name, policy in _LED.items():
                note(f"{count} turns, {name}")
                async with open_silent_groups(parts.url, groups=1, members=_MEMBERS, turns=count, policy=policy) as silent:
                    with machine.measured(parts_of(parts)) as spent:
                        await silent.talk()
                if count == turns:
                    took[name].append(spent.by_part["router"] / count * 1000)
    free, rows = statistics.median(took["free"]), list[Row]()
    for name, some in took.items():
        ms = statistics.median(some)
        measured = f"{ms:.2f} CPU-ms ({min(some):.2f} to {max(some):.2f}), {ms / free:.2f} of free"
        rows.append(Row(f"a turn, {name}", measured, f"below {MOST_TURN_MS}", ms < MOST_TURN_MS))
    return rows


def main() -> None:
    """Measure, and print a row for each number."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=10, help="games of each team whose pushes are counted")
    parser.add_argument("--runs", type=int, default=150, help="of which the fastest counts")
    parser.add_argument("--tasks", type=int, default=4_000)
    parser.add_argument("--turns", type=int, default=4_000, help="of each silent group")
    parser.add_argument("--rounds", type=int, default=4, help="silent groups of each kind; 0: no router")
    asked = parser.parse_args()
    machine.console.print(f"Policies on {machine.describe()}")
    specs = dict(teams())
    games = [game(as_filed(team), 1) for team in specs.values()]
    rows = [*step_rows(games, asked.runs), *size_rows(games, specs, asked.tasks), *view_rows(games, asked.runs)]
    rows += [end_row(specs), *hearing_rows(specs, asked.games)]
    if asked.rounds:
        run(_add_router_rows(rows, asked.turns, asked.rounds))
    table = Table("number", "measured", "aim", "met")
    for row in rows:
        table.add_row(row.number, row.measured, row.aim, {True: "yes", False: "NO", None: ""}[row.is_met])
    machine.console.print(table)
    machine.console.print(f"Times: means of the fastest of {asked.runs} runs of each. Load at the end {machine.load()}.")


async def _add_router_rows(rows: list[Row], turns: int, rounds: int) -> None:
    rows += await router_rows(turns, rounds)


if __name__ == "__main__":
    main()
