"""What names a message, so that nobody's hides another's."""

from __future__ import annotations

from dataclasses import replace

from ioa.agent.conversation import heard, kept
from ioa.agent.history import GroupHistory
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, MessageId
from ioa.protocol.messages import Discussion
from tests.contract.agent_store.stories import sequenced
from tests.unit.group.scenario import COMM, START, launched


def test_a_message_that_bears_anothers_id_hides_only_itself() -> None:
    """What an author's filter leaves out is left out by who said it as well: anybody may choose the id that another's has."""
    first = Discussion(content="The bridge is out.", next_speaker=AgentId("eve"))
    story = launched("ada", "eve").speaks("ada", first).speaks("eve", Discussion(content="a secret", next_speaker=AgentId("ada")))
    history = GroupHistory(COMM)
    for entry in sequenced(story):
        history.apply(entry)
    view = history.view(AgentId("ada"), START, Meter())
    under = {"message_id": MessageId("m1")}
    alike = [one.model_copy(update={"header": one.header.model_copy(update=under)}) for one in view.messages]
    view = replace(view, messages=tuple(alike), log=tuple(alike))
    shown = kept(view, lambda one: "secret" not in one.content)
    assert [one.content for one in heard(shown)] == ["The bridge is out."]
    assert shown.messages == shown.log == (alike[0],)
