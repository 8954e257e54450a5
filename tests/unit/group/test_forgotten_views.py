"""What is remembered of views goes with what it is of: nobody counts it, and one user's groups would fill a service with it."""

from __future__ import annotations

import gc

from ioa.group.events import Entry, GroupLaunched, encode_entry
from ioa.group.policy import costless, hearing
from ioa.group.policy.audience import audience, chain_of, view_for
from ioa.protocol.codec import decode
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Policy
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import launched, launched_under
from tests.unit.group.test_policy import policy_of


def test_no_policy_is_kept_by_the_views_of_its_group() -> None:
    """One may take up 4 MB, and a user may have gone through hundreds of groups with one of his own each."""
    told = policy_of({"name": "talk", "roles": ["a", "b"], "exits": [{"to": "end"}]}).model_dump(mode="json")
    told["roles"][1]["secret"] = True
    policy = Policy.model_validate(told)
    story = launched_under(policy, {"a": ["ada"], "b": ["bob"]}, "ada", "bob")
    entry = Entry.of(story.log[0], story.state, audience(policy, story.state, story.log[0]))
    stored = encode_entry(entry.model_copy(update={"chain": chain_of(policy, story.state, None)})).data
    before = len(hearing._members._known)
    for number in range(3):
        room = decode(Entry, stored.replace(story.state.comm_id.encode(), f"{number:0{len(story.state.comm_id)}}".encode()))
        assert isinstance(room.event, GroupLaunched)
        assert room.event.charter.policy is not None
        seen = [view_for(room.event.charter.policy, room, AgentId(me)) for me in ("ada", "bob")]
        assert len(hearing._members._known) > before
        del room, seen
        gc.collect()
        assert len(hearing._members._known) == before


def test_no_task_is_kept_by_its_views() -> None:
    """Each read of a log has it decoded anew, and may have 35 kB in memory; the same task is shown as the same one."""
    task = launched("ada", "bob").assigns("ada", "t1-1:bob").open("t1-1").model_copy(update={"spent": Usage(tokens_in=1)})
    before = len(costless._tasks._known)
    assert costless.costless(task) is costless.costless(task)
    assert len(costless._tasks._known) == before + 1
    del task
    gc.collect()
    assert len(costless._tasks._known) == before
