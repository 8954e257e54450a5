"""Who is asked after a message whether to step in, and what it may do."""

from __future__ import annotations

from ioa.group.joining import ADD
from ioa.group.policy.casting import Scene
from ioa.group.policy.ways_out import has_visit
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import MAX_MEMBERS, Asking, Course, GroupState, Member
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision
from ioa.protocol.policy import Policy, Watcher

MAX_STRUCK = 128
"""How many stretches of a talk may be struck, with others between them: each entry of the group tells all of them."""


def watching(policy: Policy, course: Course, speaker: Member, turns_taken: int) -> tuple[int, ...]:
    """Return the watchers that are to be asked after a message, by their numbers.

    Args:
        policy: What leads the group.
        course: Where the message was said.
        speaker: Who has said it.
        turns_taken: How many turns of the group are used up with it.
    """
    nodes, roles = policy.node_numbers, policy.role_numbers
    return tuple(
        [
            number
            for number, watcher in enumerate(policy.watchers)
            if (watcher.node is None or nodes[watcher.node] == course.node)
            and (watcher.by is None or roles[watcher.by] in speaker.roles)
            and turns_taken % watcher.every == 0
        ]
    )


def steps_in(watcher: Watcher, scene: Scene) -> tuple[str, ...]:
    """Return what a watcher may choose besides nothing: of the nodes it goes back to those that were entered, and still may be."""
    state = scene.state
    able = {
        "remove": any(one != state.owner for one in state.hearing),
        ADD: len(state.members) < MAX_MEMBERS and bool(scene.policy.able(scene.policy.role_numbers)),
        "go": False,
    }
    numbers = scene.policy.node_numbers
    is_full = len(scene.course.struck) >= MAX_STRUCK
    earlier = [to for to in watcher.go if scene.course.visits[numbers[to]] and has_visit(scene, to) and not is_full]
    return (*(verb for verb in watcher.may if able.get(verb, True)), *earlier)


NAMING = ("remove", "hint")
"""What a watcher may choose that names members."""


def nameable(state: GroupState, choice: str) -> tuple[AgentId, ...]:
    """Return whom a watcher may name with what it chooses of `NAMING`: the owner is not to be removed."""
    return tuple([one for one in state.hearing if choice == "hint" or one != state.owner])


def check_step(state: GroupState, stage: Asking, decided: Decision) -> None:
    """Refuse a decision that names members who cannot be meant, or nobody where somebody is.

    Raises:
        IllegalEventError: It says whom it may name.
    """
    choice, named = decided.choice, decided.members
    names, legal = stage.about == "watch" and choice in NAMING, nameable(state, choice)
    why = ""
    if named and not names:
        why = f"{choice} names nobody: leave `members` out."
    elif names and (not named or not {*named} <= {*legal}):
        why = f"Say whom you {choice}, as `members`: some of {', '.join(legal)}."
    elif stage.about == "watch" and choice == ADD:
        why = "To add somebody, have it join: who does is your answer."
    elif choice == "hint" and names and not decided.content.strip():
        why = "A hint says something, as `content`."
    if why:
        raise IllegalEventError(RejectionCode.BAD_DECISION, why)
