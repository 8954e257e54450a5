"""The rule brain: `ioa.ports.brain.Brain` without a model.

Rules read what strangers wrote, by means whose time nobody can promise. So they read no more than they can understand, beside the
event loop, and what takes too long is given up: an agent keeps its leases and its other groups whatever it is told to plan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from ioa.agent.functions import Functions, Patience
from ioa.agent.rules.matching import DEFAULT_THRESHOLD
from ioa.agent.rules.merging import conclude
from ioa.agent.rules.nesting import approach
from ioa.agent.rules.planning import plan_goal, task_id_of
from ioa.agent.rules.turns import next_utterance
from ioa.errors import IoaError, PayloadTooLargeError, TaskError
from ioa.group.state import PlannedTask
from ioa.ports.brain import Alone, Contact, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.protocol.messages import Conclusion
from ioa.protocol.search import Need, SearchResult

MAX_READ_CHARS = 2_000
"""A longer goal or task is not split. A regular expression keeps the whole process waiting while it looks, in whatever thread: only
the length of what it looks at bounds that."""

_DECIDES_WITHIN = timedelta(seconds=10)
_PLANNED_AT_ONCE, _SAID_AT_ONCE = 1, 8
"""How many plans, which read what strangers wrote, and how many utterances are thought out at the same time."""

T = TypeVar("T")


class RuleBrain:
    """Split a goal into needs, match them by discovery, assign, pause and merge. Holds no state.

    Args:
        threshold: The least similarity, -1 to 1, of an agent that fits a need; it belongs to the embedding model in use.
        decides_within: How long a decision may take, what it asks of discovery left out.
    """

    def __init__(self, threshold: float = DEFAULT_THRESHOLD, decides_within: timedelta = _DECIDES_WITHIN) -> None:
        self._threshold = threshold
        self._within = decides_within
        self._planning = Functions("the rules", _PLANNED_AT_ONCE, timedelta(0))
        self._speaking = Functions("the rules", _SAID_AT_ONCE, timedelta(0))

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Find agents for all needs of a goal with one search.

        Raises:
            PayloadTooLargeError: The goal is longer than what rules read.
            TaskError: The rules came to no end with it.
            UnavailableError: Discovery does not answer.
        """
        if len(mission.text) > MAX_READ_CHARS:
            raise PayloadTooLargeError(
                f"The goal has {len(mission.text):,} characters, and without a model agents read up to {MAX_READ_CHARS:,}.",
                hint="Say in a few sentences what is wanted and send the rest as a file, or set a model (IOA_LLM_MODEL).",
            )
        return await self._decided(lambda asked: plan_goal(mission, asked, self._threshold), tools)

    async def speak(self, view: GroupView) -> Utterance:
        """Hand out what is ready, pause on what is open, or conclude."""
        return await self._aside(self._speaking, lambda: next_utterance(_legible(view)))

    async def conclude(self, view: GroupView) -> Conclusion:
        """Merge the results in the plan's order."""
        return await self._aside(self._speaking, lambda: conclude(_legible(view)))

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Do a task alone in words that stand on their own, or open a nested team for its parts.

        What is longer than what rules read is done alone, in the words it was given out in.
        """
        if any(len(spec.task_desc) > MAX_READ_CHARS for spec in (task.spec, *(used.spec for used in task.used))):
            return Alone(task.spec.task_desc)
        task = replace(task, group=_legible(task.group))
        return await self._decided(lambda asked: approach(task, asked, self._threshold), tools)

    async def _decided(self, decide: Callable[[TeamTools], Coroutine[_Question, Any, T]], tools: TeamTools) -> T:
        """Let a decision think beside the event loop, and ask on it what it wants to know in between."""
        decision = decide(_AskingTools())
        step = await self._aside(self._planning, partial(_next_step, decision, None, None))
        while not isinstance(step, _Decided):
            try:
                answer = await step(tools)
            except IoaError as error:
                step = await self._aside(self._planning, partial(_next_step, decision, None, error))
            else:
                step = await self._aside(self._planning, partial(_next_step, decision, answer, None))
        return step.what

    async def _aside(self, runs: Functions, think: Callable[[], T]) -> T:
        """Run what only reads and decides in a thread that is left behind if it comes to no end.

        Raises:
            TaskError: It was left behind.
        """
        try:
            async with runs.slot(Patience(self._within, lambda: self._within)) as slot:
                thought: T = await slot.call(think, (), self._within)
                return thought
        except TaskError:
            raise TaskError(
                f"The rules came to no decision within {self._within.total_seconds():g} s.",
                hint="Say it in shorter and fewer sentences, or set a model (IOA_LLM_MODEL).",
            ) from None


_Question = Callable[[TeamTools], Awaitable[object]]
"""What a decision asks of its tools."""


@dataclass(frozen=True)
class _Decided(Generic[T]):
    """What a decision came to."""

    what: T


@dataclass(frozen=True)
class _Asked(Generic[T]):
    """Something asked within a decision: awaiting it hands the question to who runs the decision, and gives the answer."""

    question: Callable[[TeamTools], Awaitable[T]]

    def __await__(self) -> Generator[_Question, T, T]:
        return (yield self.question)


class _AskingTools:
    """Tools that ask nobody themselves, so that a decision needs no event loop."""

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Have discovery asked."""
        found: SearchResult = await _Asked(lambda tools: tools.search_client(needs))
        return found

    async def contacts(self) -> Sequence[Contact]:
        """Have the contacts looked up."""
        known: Sequence[Contact] = await _Asked(lambda tools: tools.contacts())
        return known


def _next_step(decision: Coroutine[_Question, Any, T], answer: object, error: IoaError | None) -> _Question | _Decided[T]:
    """Let a decision go on until it asks the next question or is made."""
    try:
        return decision.throw(error) if error is not None else decision.send(answer)
    except StopIteration as made:
        return _Decided(made.value)


def _legible(view: GroupView) -> GroupView:
    """A group without a plan whose goal is too long to be split has one task, the goal as it is."""
    charter = view.charter
    if charter.plan or len(charter.goal) <= MAX_READ_CHARS:
        return view
    whole = PlannedTask(task_id=task_id_of(0), assignee=charter.owner, task_desc=charter.goal)
    return replace(view, charter=charter.model_copy(update={"plan": (whole,)}))
