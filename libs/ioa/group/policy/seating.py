"""In which order members join a group in which roles are secret.

It says nothing of who plays what: whoever sees the members, in whichever order, sees the same one whoever holds which role. So
nothing that is drawn or goes round by the places of members tells of them either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.policy import Casting, Policy


def seated(
    policy: Policy, comm_id: CommId, members: Iterable[AgentId], cast: Iterable[Casting]
) -> tuple[tuple[AgentId, ...], tuple[Casting, ...]]:
    """Return the members in the order in which they join, each once, and the cast with its holders in that order.

    The owner, who comes first, stays so. The others are drawn by a hash of the group and of each, if roles are secret.

    Args:
        policy: What leads the group.
        comm_id: The group.
        members: Who takes part, the owner first.
        cast: Who holds each role.
    """
    owner, *others = dict.fromkeys(members)
    if not policy.secrets:
        return (owner, *others), tuple(cast)
    places = {owner: b"", **{one: hashlib.sha256(f"{comm_id}/{one}".encode()).digest() for one in others}}
    drawn = [one.model_copy(update={"members": tuple(sorted(one.members, key=places.__getitem__))}) for one in cast]
    return tuple(sorted(places, key=places.__getitem__)), tuple(drawn)
