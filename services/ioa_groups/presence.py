"""Whether an agent that is wanted in a group is there."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import NamedTuple

from ioa.errors import IoaError, NoAgentError, NotYetError
from ioa.ports.clock import Clock
from ioa.ports.registry_store import LivenessView
from ioa.protocol.ids import AgentId

_AWAY = timedelta(minutes=1)
"""Who was heard within this time may be back in a moment, and is worth waiting for, for as long again."""
_ASKED_AGAIN = timedelta(seconds=150)
"""After so long without a question for somebody who is not there it begins anew: who waits for him asks more often."""
_MOST_REMEMBERED = 4_096


def absence(registry: LivenessView, agent_id: AgentId) -> IoaError:
    """Tell an agent that restarts, or that could not be heard for a moment, from one that is gone."""
    silence = registry.silence(agent_id)
    if not registry.is_lost(agent_id) or (silence is not None and silence <= _AWAY):
        return NotYetError(f"{agent_id} is away for a moment.", hint="Ask again.")
    return NoAgentError(f"{agent_id} cannot join: it is not online.")


class _Wanted(NamedTuple):
    """When somebody was wanted and not there, first and last."""

    first: datetime
    last: datetime


class Absences:
    """Tell of agents that are wanted in groups who is worth waiting for.

    That somebody was heard a moment ago is not enough: one that registers once in a while and leaves at once is never there, and
    always was heard lately. Goals with it in their teams would wait until their deadlines, in places that others wait for.

    Args:
        registry: Knows who is there.
        clock: Says since when somebody is wanted.
    """

    def __init__(self, registry: LivenessView, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._wanted: OrderedDict[AgentId, _Wanted] = OrderedDict()

    def check(self, agent_id: AgentId) -> None:
        """See that an agent is there.

        Raises:
            NotYetError: It is away for a moment.
            NoAgentError: It is gone, or was waited for long enough.
        """
        wanted, now = self._wanted.pop(agent_id, None), self._clock.now()
        if self._registry.is_online(agent_id):
            return
        error = absence(self._registry, agent_id)
        if isinstance(error, NotYetError):
            first = now if wanted is None or now - wanted.last > _ASKED_AGAIN else wanted.first
            self._wanted[agent_id] = _Wanted(first, now)
            if len(self._wanted) > _MOST_REMEMBERED:
                self._wanted.popitem(last=False)
            if now - first > _AWAY:
                why = f"{agent_id} cannot join: it comes and goes, and was not there for {_AWAY.total_seconds():.0f} s."
                error = NoAgentError(why)
        raise error
