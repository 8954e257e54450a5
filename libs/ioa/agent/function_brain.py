"""The function brain: the function that an author registered with `@agent.speak` decides the agent's messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from ioa.agent.groups.answer_files import files_of_answer
from ioa.agent.groups.memory import Memories
from ioa.agent.send import until_answered
from ioa.agent.turn_view import Said, TurnView
from ioa.errors import InvalidInputError, reason_of
from ioa.group.legality import TO_CONCLUDE
from ioa.ports.brain_types import Invite, Utterance, WholeConclusion
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.messages import ConcludeGroupDiscussion, Decision, Discussion, Pass
from ioa.protocol.texts import shortened

if TYPE_CHECKING:
    from ioa.agent.agent_ports import AgentPorts
    from ioa.agent.definition import AgentDefinition
    from ioa.agent.tasks.task_files import GroupFiles
    from ioa.agent.tasks.worker_pool import WorkerPool

MAX_INSTRUCTIONS_BYTES = 8_000
INSTRUCTIONS_TIMEOUT = timedelta(seconds=5)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class FunctionBrain:
    """Decides the messages of an agent whose author registered a speaker; the agent's other brain forms its teams.

    Args:
        agent: The agent.
        ports: The agent's memory and model.
        workers: Runs the functions, apart from tasks, so that tasks do not delay the agent's turns.
    """

    agent: AgentDefinition
    ports: AgentPorts
    workers: WorkerPool

    @property
    def speaks(self) -> bool:
        """True if the author's function decides the agent's messages."""
        return self.agent.speaker is not None

    async def prepare(self, view: TurnView, files: GroupFiles) -> TurnView:
        """Add the agent's memory and instructions to a view, and the goal's files if a function reads it."""
        view = await Memories(self.ports).remembered(view)
        write = self.agent.instructions
        if self.speaks or callable(write):
            view = replace(view, inputs=await until_answered(files.fetch, view.charter.inputs))
        if not callable(write):
            return replace(view, instructions=write) if write else view
        try:
            instructions = await self._call(write, view, INSTRUCTIONS_TIMEOUT)
            if not isinstance(instructions, str):
                raise InvalidInputError(f"The instructions are {type(instructions).__name__}, not text.")
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _log.warning("no_instructions", comm_id=view.comm_id, turn=view.turn, error=reason_of(error))
            instructions = ""
        return replace(view, instructions=shortened(instructions, MAX_INSTRUCTIONS_BYTES))

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Return the message of the author's function; a conclusion is sent with its announcement.

        Raises:
            InvalidInputError: The function returned no message, or a decision that was not requested.
        """
        said = await self._call_speaker(view)
        if isinstance(said, Decision):
            raise InvalidInputError("No decision is requested in this turn.", hint="Return view.say(…), for example.")
        return ConcludeGroupDiscussion(conclusion=said) if isinstance(said, WholeConclusion) else said

    async def decide(self, view: TurnView) -> Decision | Pass | Invite:
        """Return the choice of the author's function.

        Raises:
            InvalidInputError: The function returned another message.
        """
        said = await self._call_speaker(view)
        if not isinstance(said, Decision | Pass | Invite):
            raise InvalidInputError("A decision is requested in this turn.", hint="Return view.decide(…).")
        return said

    async def conclude(self, view: TurnView) -> WholeConclusion:
        """Return the conclusion of the author's function; under a policy a message is a conclusion.

        Raises:
            InvalidInputError: The function returned no conclusion.
        """
        said = await self._call_speaker(replace(view, offer=view.offer if view.part is None else TO_CONCLUDE))
        if isinstance(said, Discussion) and view.part is not None:
            reason = Reason.CONCLUDED if view.state.forced is None else Reason.FAILED
            return WholeConclusion(content=said.content, reason=reason, artifacts=files_of_answer(view.tasks))
        if not isinstance(said, WholeConclusion):
            raise InvalidInputError("The discussion has ended.", hint="Return view.conclude(…).")
        return said

    async def _call_speaker(self, view: TurnView) -> Said:
        assert self.agent.speaker is not None
        said = await self._call(self.agent.speaker, view, None)
        view.meter.decided_by = DecidedBy(kind="function")
        if not isinstance(said, Said):
            raise InvalidInputError(
                f"The speaker returned {type(said).__name__}.",
                hint="Return view.say(…), decide(…), ask(…), assign(…), pause(…), pass_turn(…) or conclude(…).",
            )
        return said

    async def _call(self, function: Callable[[TurnView], Any], view: TurnView, within: timedelta | None) -> Any:
        """Call a function of the author in a slot, for which it waits at most half of its time."""
        async with self.workers.slot((within or view.state.limits.floor_timeout) / 2, view.charter.user) as slot:
            return await slot.call(function, (view,), within)
