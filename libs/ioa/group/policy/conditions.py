"""Whether what an exit waits for has come about."""

from __future__ import annotations

from ioa.group.policy.casting import Scene
from ioa.protocol.policy import Condition


def holds(when: Condition, scene: Scene) -> bool:
    """Whether all that a condition names holds."""
    course = scene.course
    return (
        (when.turns is None or course.turns >= when.turns)
        and (when.rounds is None or has_had(scene, when.rounds))
        and (when.visits is None or course.visits[course.node] >= when.visits)
    )


def has_had(scene: Scene, rounds: int) -> bool:
    """Whether everybody who is present has had so many turns in this visit."""
    taken = scene.course.taken
    return all(taken[number] >= rounds for number in scene.present)
