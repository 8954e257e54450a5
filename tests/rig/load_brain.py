"""How agents of load decide: they solve the puzzles of `tests.rig.oracle` as sensible ones would.

A wrong answer is the system's doing. What they say and whom they ask follows from the goal's own words. False in that they
understand nothing else. The same is decided by a brain and by an agent's own functions, so that both are under load.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ioa.agent.brain_port import TaskView
from ioa.agent.conversation import Heard, read_conversation
from ioa.agent.definition import AgentDefinition
from ioa.agent.turn_view import Said, TurnView
from ioa.group.legality import Offer
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TaskRecord, TeamLaunch, TeamTools, Utterance
from ioa.protocol.agents.search import Need
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.policy_parts import END
from ioa.protocol.teams.team_file import TeamSpec, team_of
from tests.rig.oracle import Puzzle, number_in, part_of, parts_of, puzzle_of, sight_of, stated

POOL = "load"
"""The pool of all agents of load."""

PERSON = "guest"
"""Who has a seat in some of the teams. Nobody may ever sit there: then its time runs out."""

_LED: TeamSpec = team_of(
    {
        "team": "led",
        "leader": "judge",
        "roles": {"first": POOL, "second": POOL, "judge": POOL},
        "nodes": [
            {"name": "tell", "roles": ["first", "second"], "opens": {"role": "first", "say": "Let us tell."},
             "max": 3, "visits": 20, "then": "check"},
            {"name": "check", "roles": ["judge"], "max": 1, "exits": [
                {"to": "vote", "by": "speaker"}, {"to": "tell", "by": "speaker"}, {"to": "tell"}, {"to": "vote"}]},
            {"name": "vote", "roles": ["first", "second"], "turns": "together", "form": {"told": "0..100"}, "max": 6,
             "exits": [{"to": "end", "by": "judge"}]},
        ],
    }
)  # fmt: skip
"""Two tell each other numbers, and the judge sends them back until all are told. Then both say side by side how many those are, and
the judge is asked whether that is the end."""

_REVIEWED: TeamSpec = team_of(
    {
        "team": "reviewed",
        "leader": "judge",
        "roles": {
            "first": POOL,
            "second": POOL,
            "judge": {"agent": POOL, "hears_all": True, "memory": {"window": 30}},
            "guest": {"human": PERSON, "timeout": 1.5, "prompt": "You say what you think of it."},
        },
        "watchers": [
            {"role": "judge", "node": "tell", "by": "second", "may": ["hint", "go"], "go": ["tell"]},
            {"role": "judge", "node": "ask", "by": "guest", "may": ["hint"]},
        ],
        "nodes": [
            {"name": "meet", "roles": ["first", "second", "judge"], "opens": {"role": "judge", "say": "Let us tell."},
             "max": 1, "then": "tell"},
            {"name": "tell", "roles": ["first", "second"], "turns": {"mode": "ask", "by": "judge"}, "max": 3, "visits": 8,
             "review": {"by": "judge", "tries": 2, "then": "drop"}, "guards": ["not_empty", {"longest": 600}], "then": "check"},
            {"name": "check", "roles": ["judge"], "max": 1, "heard_by": "node", "exits": [
                {"to": "ask", "by": "speaker"}, {"to": "tell", "by": "speaker"}, {"to": "tell"}, {"to": "ask"}]},
            {"name": "ask", "roles": ["guest"], "max": 1, "heard_by": ["judge"], "form": {"agrees": "yes/no"}, "then": "vote"},
            {"name": "vote", "roles": ["first", "second"], "turns": {"mode": "together", "peers": "never"}, "heard_by": ["judge"],
             "form": {"told": "0..100"}, "max": 2, "then": "end"},
        ],
    }
)  # fmt: skip
"""Each number is a draft first, which the judge passes or not, and it chooses who speaks; it steps in with a hint, or has all begin
anew. A person is asked, and only the judge hears it and the votes."""

_FORKED: TeamSpec = team_of(
    {
        "team": "forked",
        "leader": "judge",
        "roles": {"first": POOL, "second": POOL, "judge": POOL},
        "nodes": [
            {"name": "begin", "roles": ["judge"], "opens": {"role": "judge", "say": "Let us tell."}, "max": 1,
             "take": "all", "then": ["left", "right"]},
            {"name": "left", "roles": ["first"], "max": 2, "writes": ["figures"], "then": "join"},
            {"name": "right", "roles": ["second"], "max": 2, "writes": ["figures"], "then": "join"},
            {"name": "join", "roles": ["judge"], "join": "all", "max": 1, "then": "end"},
        ],
    }
)  # fmt: skip
"""Two members send numbers in turn, and write them on the board; the judge has the floor again when both are done."""

_CREWED: TeamSpec = team_of(
    {
        "team": "crewed",
        "leader": "judge",
        "roles": {"judge": POOL, "first": POOL, "second": POOL},
        "nodes": [
            {"name": "work", "roles": ["judge"], "heard_by": "node", "tasks": True, "max": 1, "then": "talk"},
            {"name": "talk", "roles": ["first", "second"], "max": 2, "then": "end"},
        ],
    }
)  # fmt: skip
"""The judge gives out all parts, waits for some and pauses on others; who does none of them hears nothing of it."""

_JOINED: TeamSpec = team_of(
    {
        "team": "joined",
        "leader": "judge",
        "roles": {"judge": POOL, "first": POOL},
        "nodes": [
            {"name": "meet", "roles": ["judge", "first"], "max": 1, "invites": True, "then": "tell"},
            {"name": "tell", "roles": ["first"], "max": 4, "then": "end"},
        ],
    }
)  # fmt: skip
"""The judge has one more join, and who was there and who has joined tell numbers in turn."""

TEAMS: Mapping[str, TeamSpec] = {
    "led": _LED,
    "reviewed": _REVIEWED,
    "forked": _FORKED,
    "crewed": _CREWED,
    "joined": _JOINED,
}
"""Who works at goals that a policy leads, by their kind."""

_SYLLABLES = "ba do fe gi ku la me no pi ra su ti vo xe zu".split()
_MOST_HELPERS = 3
_REJECTED, _STEPS_IN = 0.3, 0.25
"""How often a draft is rejected, and how often a watcher does what it may."""
_SIGHT = re.compile(r"(\d+) is (\d+)")


class LoadBrain:
    """Solve the goal's puzzle.

    Args:
        roster: The agents that teams are made of.
        searches: Ask discovery before a team is formed, as a real brain does; the answer is not used.
    """

    def __init__(self, roster: Sequence[AgentId], *, searches: bool = False) -> None:
        self._roster = roster
        self._searches = searches

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Take some of the roster."""
        if self._searches:
            await tools.search_client([Need(text=mission.text)])
        others = [agent_id for agent_id in self._roster if agent_id != mission.me.agent_id]
        return TeamLaunch(members=_some(random.Random(mission.text), others))

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Say what is to be said, after some thought."""
        said = await _decided(_of_group(view), self._roster)
        assert not isinstance(said, Decision), "nobody asks whoever has the floor to decide"
        return ConcludeGroupDiscussion() if isinstance(said, Conclusion) else said

    async def decide(self, view: TurnView) -> Decision:
        """Choose the end if there is one."""
        said = await _decided(_of_group(view), self._roster)
        assert isinstance(said, Decision)
        return said

    async def conclude(self, view: TurnView) -> Conclusion:
        """State the answer, as far as it is known."""
        return _conclusion(_of_group(view))

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Treat a task that reads like a goal as one."""
        others = [agent_id for agent_id in task.group.state.living() if agent_id != task.me.agent_id]
        if task.spec.task_desc.startswith("load ") and others:
            return TeamLaunch(members=_some(random.Random(task.spec.task_desc), others))
        return None


def observe_and_speak(agent: AgentDefinition, roster: Sequence[AgentId], *, speaks: bool) -> None:
    """Let instructions be what puzzles ask an agent to see; if it `speaks`, a function says it, and invites some of the roster."""

    def look(view: TurnView) -> str:
        told = _told(view.conversation)
        return f"{len(told)} is {sight_of(view.goal, len(told))}"

    agent.instructions = look
    if not speaks:
        return

    @agent.speak
    async def speak(view: TurnView) -> Said:
        said = await _decided(_of_turn(view), roster)
        return view.conclude(said.content, reached=said.reason is Reason.CONCLUDED) if isinstance(said, Conclusion) else said


@dataclass(frozen=True)
class _Situation:
    """What is decided by. `legal` are kinds of messages.

    `is_forced` says that a limit has ended the discussion, `is_led` that a policy leads it.
    """

    me: AgentId
    goal: str
    comm_id: CommId
    turn: int
    refusals: int
    said: Sequence[Heard]
    tasks: Sequence[TaskRecord]
    others: Sequence[AgentId]
    legal: Collection[str]
    is_forced: bool
    observation: str
    offer: Offer | None
    is_led: bool


def _of_group(view: TurnView) -> _Situation:
    others = [agent_id for agent_id in view.reachable if agent_id != view.me]
    of_state = (view.charter.goal, view.state.comm_id, view.state.turn, len(view.refusals))
    legal, is_forced = set(view.legal), view.state.forced is not None
    of_policy = view.offer, view.part is not None
    heard = read_conversation(view.log, view.replies)
    return _Situation(view.me, *of_state, heard, view.tasks, others, legal, is_forced, view.instructions, *of_policy)


def _of_turn(view: TurnView) -> _Situation:
    others = [mate.agent_id for mate in view.team if mate.online] or [mate.agent_id for mate in view.team]
    of_state = (view.goal, view.comm_id, view.turn, len(view.refusals))
    is_forced = "CONCLUDE_GROUP_DISCUSSION" not in view.legal and view.part is None  # under a policy every end looks like it
    of_talk = (view.conversation, view.tasks, others, view.legal)
    return _Situation(view.me, *of_state, *of_talk, is_forced, view.instructions, view.offer, view.part is not None)


async def _decided(
    now: _Situation, roster: Sequence[AgentId]
) -> Discussion | Decision | SyncTaskAssignment | AsyncTaskAssignment | Pause | Conclusion | Invite:
    """Talk and tell as long as the goal asks for it, give out what is missing, wait for it; else conclude."""
    puzzle = _puzzle(now)
    chance = random.Random(f"{now.goal}/{now.turn}/{now.refusals}")
    if _turns(now) < puzzle.turns and "DISCUSSION" in now.legal:
        await _think(puzzle, chance)
        return Discussion(content=_words(chance), next_speaker=chance.choice(now.others))
    if now.offer is not None and not now.offer.concluding:
        strangers = [agent_id for agent_id in roster if agent_id not in (now.me, *now.others)]
        if now.offer.invites and len(now.others) == 1 and strangers and not now.refusals:
            return Invite(chance.choice(strangers), role=now.offer.invites[-1])
        return await _led(now, puzzle, chance)
    if len(_told(now.said)) < puzzle.sights and "DISCUSSION" in now.legal:
        return Discussion(content=now.observation or _words(chance), next_speaker=chance.choice(now.others))
    return _work(now, puzzle, chance) or _conclusion(now)


def _work(now: _Situation, puzzle: Puzzle, chance: random.Random) -> SyncTaskAssignment | AsyncTaskAssignment | Pause | None:
    """Give out what is missing, and wait for it; None if nothing is, or nobody may do so now."""
    known = _known(now)
    under_way = {part_of(task.spec.task_desc) for task in now.tasks if task.outcome is None}
    missing = [part for part in parts_of(now.goal) if part not in known and part not in under_way][: puzzle.batch]
    if missing and "SYNC_TASK_ASSIGNMENT" in now.legal:
        is_awaited = len(now.tasks) < puzzle.sync * puzzle.batch
        kind = SyncTaskAssignment if is_awaited else AsyncTaskAssignment
        return kind(content=_words(chance), tasks=_tasks(now, chance, missing))
    if "PAUSE" in now.legal:
        return Pause(triggers=tuple(task.spec.task_id for task in now.tasks if task.outcome is None))
    return None


async def _led(
    now: _Situation, puzzle: Puzzle, chance: random.Random
) -> Discussion | Decision | SyncTaskAssignment | AsyncTaskAssignment | Pause:
    """Say what a policy asks for: tell what is seen and how many those are, and as the judge lead on once all is told or done.

    What a policy calls the ways on is what it offers: back to `tell`, or past it.
    """
    offered, told = now.offer, len(_told(now.said))
    assert offered is not None
    if offered.options or offered.form:
        await _think(puzzle, chance)
    if offered.options:
        return _chosen(offered, chance)
    if offered.tasks and (work := _work(now, puzzle, chance)) is not None:
        return work
    if offered.form:
        return Discussion(content=_words(chance), fields={"told": told})
    if offered.go:
        past = [node for node in offered.go if node != "tell"]
        is_over = told >= puzzle.sights or "tell" not in offered.go
        return Discussion(content=_words(chance), go=past[0] if past and is_over else "tell")
    content = now.observation if told < puzzle.sights and now.observation else _words(chance)
    return Discussion(content=content, writes=dict.fromkeys(offered.writes, content))


def _chosen(offered: Offer, chance: random.Random) -> Decision:
    """Decide what is asked for: the end if it is one of the options; most drafts pass, and most messages are let go."""
    match offered.about:
        case "review":
            return Decision(choice="reject", content=_words(chance)) if chance.random() < _REJECTED else Decision(choice="pass")
        case "watch" if "hint" in offered.options and chance.random() < _STEPS_IN:
            return Decision(choice="hint", content=_words(chance), members=offered.members[:1])
        case "watch":
            back = [option for option in offered.options if option not in ("nothing", "hint")]
            return Decision(choice=back[0] if back and chance.random() < _STEPS_IN else offered.default)
        case "speaker":
            return Decision(choice=chance.choice(offered.options))
        case _:
            return Decision(choice=END if END in offered.options else offered.default)


def _conclusion(now: _Situation) -> Conclusion:
    """Return the answer, as far as it is known; one that a limit has cut short is none."""
    puzzle, told = _puzzle(now), _told(now.said)
    answer = stated(puzzle, _turns(now), _known(now).values(), told.values())
    # Under a policy its turn to give out tasks may be over too soon.
    undone = now.is_led and not {*parts_of(now.goal)} <= _known(now).keys()
    is_short = now.is_forced or len(told) < puzzle.sights or undone
    return Conclusion(content=answer, reason=Reason.FAILED if is_short else Reason.CONCLUDED)


def _puzzle(now: _Situation) -> Puzzle:
    puzzle = puzzle_of(now.goal)
    assert puzzle is not None, f"{now.goal!r} is no goal of load"
    return puzzle


async def _think(puzzle: Puzzle, chance: random.Random) -> None:
    least, most = puzzle.pace.thought
    await asyncio.sleep(chance.uniform(least.total_seconds(), most.total_seconds()))


def _some(chance: random.Random, others: Sequence[AgentId]) -> tuple[AgentId, ...]:
    return tuple(chance.sample(others, k=min(len(others), chance.randint(1, _MOST_HELPERS))))


def _tasks(now: _Situation, chance: random.Random, parts: Sequence[str]) -> tuple[TaskSpec, ...]:
    """Return a task for each part, for one member after the other; its words name it uniquely in the whole system."""
    members = sorted((now.me, *now.others))
    first, specs = chance.randrange(len(members)), []
    for number, part in enumerate(parts):
        task_id = TaskId(f"t{now.turn}-{number}")
        assignee = members[(first + number) % len(members)]
        specs.append(TaskSpec(task_id=task_id, assignee=assignee, task_desc=f"{part} {now.comm_id}/{task_id}"))
    return tuple(specs)


def _turns(now: _Situation) -> int:
    """Count what was only said; what goes with tasks stands in their turn."""
    giving = {one.turn for one in now.said if one.kind == "task"}
    return sum(one.kind == "message" and one.turn not in giving for one in now.said)


def _told(said: Sequence[Heard]) -> dict[int, int]:
    """Return the numbers that were told, by how many had been told before."""
    found = (_SIGHT.fullmatch(one.content) for one in said if one.kind == "message")
    return {int(one[1]): int(one[2]) for one in found if one}


def _known(now: _Situation) -> dict[str, int]:
    """Return what the parts that are done came to."""
    parts = set(parts_of(now.goal))
    done = {part_of(task.spec.task_desc): task.conclusion for task in now.tasks if task.outcome is TaskOutcome.DONE}
    return {part: number_in(conclusion) for part, conclusion in done.items() if part in parts}


def _words(chance: random.Random) -> str:
    return " ".join("".join(chance.choices(_SYLLABLES, k=3)) for _ in range(12))
