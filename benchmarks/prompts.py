"""Play the recorded conversations of a capable model again, and count what it was asked: calls, prompt tokens, shared beginnings.

    make bench BENCHMARK=prompts ARGS="--goal party --write /tmp/asked"

No model runs: what it said lies in `benchmarks/data/prompts`, and the whole system in memory goes on from there, so that an answer
that is not legal any more, or that nobody asks for, fails the run. `--endpoint` has a model behind an OpenAI-compatible address
answer instead, or whoever plays one by hand, and keeps its answers as the new recording.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from benchmarks.played_goals import GOALS, PlayedGoal
from benchmarks.tape import PURPOSES, Heard, Tape, read_tape, write_tape
from ioa.adapters.openai.chat_request import strict_schema
from ioa.adapters.openai.openai_chat import ModelSettings, open_openai_chat
from ioa.agent.model.answers import Speech
from ioa.client.costs import costs_by_purpose, decision_calls
from ioa.group.events import Entry
from ioa.ports.chat_model import ChatModel
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AsyncTaskAssignment, ConcludeGroupDiscussion, SyncTaskAssignment, TaskSpec
from ioa.telemetry.logs import configure_logs
from ioa_testkit import FinishedGoal, System
from tests.unit.agent.model.walks import above, walked

TAPES = Path(__file__).with_name("data") / "prompts"
CALLS_BEFORE, TOKENS_BEFORE = 133, 133_900
"""What goals of this kind took when each task and each conclusion was asked for twice, and no prompt began like the one before."""
_BEFORE = {"form": 783, "speak": 1_280, "approach": 788, "conclude": 1_200, "task": 663}
"""How large a prompt was then, in tokens, by its purpose."""
MOST_CALLS, MOST_TOKENS, LEAST_SHARE = 0.65, 0.70, 0.80
_LEAST_CACHED, _BLOCK = 1_024, 128
"""Tokens: where providers begin to keep the beginning of a request, and in which steps."""
_SCHEMA = len(json.dumps(strict_schema(Speech))) // 4
"""Tokens of the schema that a request begins with. It is part of that beginning, and of no prompt."""
_TAPES_TIME, _PLAYERS_TIME = timedelta(minutes=1), timedelta(hours=2)
_AT_ONCE = 2
"""Maximum systems that run concurrently in this process."""


@dataclass(frozen=True)
class Played:
    """What came of one goal, and what its model was asked."""

    goal: PlayedGoal
    finished: FinishedGoal
    heard: Sequence[Heard]
    unplayed: int

    @property
    def calls(self) -> Counter[str]:
        """How often the model was asked, by purpose."""
        return Counter(one.line.purpose for one in self.heard)

    @property
    def tokens(self) -> float:
        """How large all prompts were."""
        return sum(one.tokens for one in self.heard)

    def shares(self) -> list[float]:
        """How much of each prompt stands at the beginning of the same agent's next one in the group."""
        return [shared / len(earlier.prompt) for earlier, _, shared in self._pairs()]

    def short_beginnings(self) -> int:
        """How many pairs begin alike for less than providers keep, though the earlier one is as long as that."""
        return sum(_SCHEMA + shared / 4 < _LEAST_CACHED <= _SCHEMA + earlier.tokens for earlier, _, shared in self._pairs())

    def full_price(self) -> float:
        """Tokens that no provider had read before, as far as this agent's talk in this group goes."""
        begins = (_SCHEMA + shared // 4 for _, _, shared in self._pairs())
        return self.tokens - sum(alike // _BLOCK * _BLOCK - _SCHEMA for alike in begins if alike >= _LEAST_CACHED)

    def before(self) -> Counter[str]:
        """How often the model would have been asked then: for each task how, each conclusion twice, each step of a chain anew."""
        calls, said = self.calls, [message.payload for message in self.finished.messages()]
        given = [one.tasks for one in said if isinstance(one, SyncTaskAssignment | AsyncTaskAssignment)]
        return Counter(
            form=calls["form"],
            speak=calls["speak"] + sum(_longest_chain(tasks) - 1 for tasks in given),
            approach=sum(map(len, given)),
            conclude=sum(isinstance(one, ConcludeGroupDiscussion) for one in said),
            task=calls["task"],
        )

    def _pairs(self) -> list[tuple[Heard, Heard, int]]:
        asked = [one for one in self.heard if one.line.purpose in ("speak", "read", "repair")]
        talks = [[one for one in asked if one.talk == talk] for talk in dict.fromkeys(one.talk for one in asked)]
        pairs = [pair for talk in talks for pair in itertools.pairwise(talk)]
        return [(earlier, later, _alike(earlier.prompt, later.prompt)) for earlier, later in pairs]

    def wrong(self) -> list[str]:
        """Say what is not as it should be; nothing if all is."""
        finished, told = self.finished, []
        if finished.result.reason is not self.goal.reason:
            told.append(f"it ended {finished.result.reason}: {finished.content}")
        told += [f"the answer does not say {words!r}" for words in self.goal.told if words not in finished.content]
        told += [f"there is no file {name}" for name in self.goal.made if name not in finished.files]
        if len(finished.result.artifacts) > len(finished.files):
            told.append("two files have the same name")
        if (deciders := {one.by.kind for one in finished.result.decisions}) != {"model"}:
            told.append(f"not the model but {', '.join(deciders) or 'nobody'} decided")
        if self.calls["repair"]:
            told += [f"not legal: {one.messages[-1].content}" for one in self.heard if one.line.purpose == "repair"]
        if self.unplayed:
            told.append(f"{self.unplayed} answers were not asked for")
        shared = costs_by_purpose(decision_calls(self._log()), finished.result.usage)
        shares = sum(usage.tokens_in for usage in shared.values())
        if not sum(one.charged for one in self.heard) == finished.result.usage.tokens_in == shares:
            told.append(f"the goal was charged with {finished.result.usage.tokens_in} tokens, and its parts with {shares}")
        called = [one.usage.tokens_in for one in decision_calls(self._log())]
        if (len(called), sum(called)) != (len(self.heard), finished.result.usage.tokens_in):
            told.append(f"the log tells of {len(called)} calls with {sum(called)} tokens")
        return [*told, *(f"others know what {one.line.agent} thought: {one.thought}" for one in self.heard if self._is_known(one))]

    def _is_known(self, heard: Heard) -> bool:
        """Whether what an agent thought is in the log, or in what another one was told."""
        others = (one.prompt for one in self.heard if one.line.agent != heard.line.agent)
        log = "".join(entry.model_dump_json() for entry in self._log())
        return bool(heard.thought) and (heard.thought in log or any(heard.thought in prompt for prompt in others))

    def _log(self) -> list[Entry]:
        return [stored.entry for stored in self.finished.log]


def _alike(earlier: str, later: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    return next(
        (at for at, (one, other) in enumerate(zip(earlier, later, strict=False)) if one != other), min(len(earlier), len(later))
    )


def _longest_chain(tasks: Sequence[TaskSpec]) -> int:
    """Return how many of these tasks build on one another at most; they stand in an order in which they can be done."""
    steps: dict[TaskId, int] = {}
    for task in tasks:
        steps[task.task_id] = 1 + max((steps.get(used, 0) for used in task.uses), default=0)
    return max(steps.values())


@dataclass(frozen=True)
class Asked:
    """How often a model was asked, in how many tokens, and how many of them no provider had read before."""

    calls: int
    tokens: float
    full: float


def compared(played: Sequence[Played]) -> tuple[Asked, Asked]:
    """Return what the goals that are measured took, and what they would have taken if their model had been asked as before."""
    measured = [one for one in played if one.goal.is_measured]
    calls = sum((one.before() for one in measured), Counter[str]())
    tokens = sum(_BEFORE[purpose] * times for purpose, times in calls.items())
    now = Asked(
        sum(one.calls.total() for one in measured),
        sum(one.tokens for one in measured),
        sum(one.full_price() for one in measured),
    )
    return now, Asked(calls.total(), tokens, tokens)


async def play(goals: Sequence[PlayedGoal], folder: Path, player: ChatModel | None = None) -> list[Played]:
    """Run goals, each in a system of its own, from tapes or with a player."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def play_one(goal: PlayedGoal) -> Played:
        async with places:
            return await _play(goal, folder / goal.name, player)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(play_one(goal)) for goal in goals]
    return [one.result() for one in running]


async def _play(goal: PlayedGoal, folder: Path, player: ChatModel | None) -> Played:
    heard, tapes = list[Heard](), list[Tape]()
    agents = goal.agents()
    for agent in agents:
        tapes.append(Tape(agent.agent_id, [] if player else read_tape(_tape_of(goal)), heard, player))
        agent.model = tapes[-1]
    system = System(folder)
    system.within = _TAPES_TIME if player is None else _PLAYERS_TIME
    async with system.serve(*agents) as running:
        finished = await running.run(goal.order, files=goal.files)
    return Played(goal, finished, heard, sum(tape.unplayed for tape in tapes))


def _tape_of(goal: PlayedGoal) -> Path:
    return TAPES / f"{goal.tape or goal.name}.jsonl"


def _tell(all_played: Sequence[Played]) -> bool:
    """Print the figures; whether they are as they should be."""
    table = Table("goal", "reason", "calls", *PURPOSES, "prompt tokens", "at full price", "least share", "short", "wrong")
    for one in all_played:
        shares = one.shares()
        figures = [f"{one.tokens:,.0f}", f"{one.full_price():,.0f}", f"{min(shares):.0%}" if shares else "", one.short_beginnings()]
        counted = [one.calls.total(), *(one.calls[purpose] or "" for purpose in PURPOSES)]
        wrong = "; ".join(one.wrong()) or "nothing"
        table.add_row(*map(str, [one.goal.name, one.finished.result.reason, *counted, *figures, wrong]))
    machine.console.print(table)
    shares = [share for one in all_played for share in one.shares()]
    now, before = compared(all_played)
    print(
        f"{now.calls} calls, {now.calls / CALLS_BEFORE:.0%} of {CALLS_BEFORE}; {now.tokens:,.0f} prompt tokens, "
        f"{now.tokens / TOKENS_BEFORE:.0%} of {TOKENS_BEFORE:,}, {now.full / TOKENS_BEFORE:.0%} at full price; "
        f"{len(shares)} pairs of prompts, mean share {sum(shares) / max(1, len(shares)):.0%}"
    )
    print(
        f"Asked as then, these goals would have taken {before.calls} calls and about {before.tokens:,.0f} prompt tokens: "
        f"{now.calls / before.calls:.0%}, {now.tokens / before.tokens:.0%}, {now.full / before.tokens:.0%} at full price"
    )
    has_kept = min(shares, default=1) >= LEAST_SHARE and not any(one.short_beginnings() for one in all_played)
    is_less = now.calls <= MOST_CALLS * before.calls and now.tokens <= MOST_TOKENS * before.tokens
    return has_kept and is_less and not any(one.wrong() for one in all_played)


def _tell_walks(number: int) -> bool:
    """Print whether prompts of groups that go on at random only grow above their tails; whether they do."""
    pairs = [pair for seed in range(number) for pair in walked(seed)]
    broken = sum(not later.startswith(above(earlier)) for earlier, later in pairs)
    print(f"{number:,} random groups, {len(pairs):,} pairs of prompts; above the tail {broken} were not as before")
    return not broken


def _write(folder: Path, all_played: Sequence[Played]) -> None:
    for one in all_played:
        (folder / one.goal.name).mkdir(parents=True, exist_ok=True)
        for number, heard in enumerate(one.heard, 1):
            text = f"{heard.prompt}\n\n===== {heard.line.agent}, {heard.line.purpose}\n{heard.line.answer}\n"
            (folder / one.goal.name / f"{number:02}.txt").write_text(text, encoding="utf-8")


async def benchmark(goals: Sequence[PlayedGoal], write: Path | None, endpoint: str, model: str) -> bool:
    """Play the goals and print what was asked; whether all is as it should be."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        player = await stack.enter_async_context(open_openai_chat(ModelSettings(endpoint, model))) if endpoint else None
        played = await play(goals, Path(folder), player)
    if endpoint:
        for one in played:
            write_tape(_tape_of(one.goal), one.heard)
    if write is not None:
        _write(write, played)
    return _tell(played)


def main() -> None:
    """Play what is asked for; exit with 1 if it is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description="Play recorded conversations again.")
    parser.add_argument("--goal", nargs="+", choices=[goal.name for goal in GOALS], help="all of them by default")
    parser.add_argument("--walks", type=int, default=1_000, help="random groups whose prompts are looked at besides")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write down there what was asked and answered")
    parser.add_argument("--endpoint", default="", help="record anew with the model at this address")
    parser.add_argument("--model", default="by-hand")
    asked = parser.parse_args()
    configure_logs("error", "console")
    goals = [goal for goal in GOALS if not asked.goal or goal.name in asked.goal]
    is_well = asyncio.run(benchmark(goals, asked.write, asked.endpoint, asked.model))
    raise SystemExit(not (_tell_walks(asked.walks) and is_well))


if __name__ == "__main__":
    main()
