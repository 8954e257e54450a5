"""What a member may say with the floor. Routers hold messages to it; prompts, checks of answers and the documentation follow it."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.group import floor
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.conditions import holds
from ioa.group.policy.turns import may_be_named
from ioa.group.policy.ways_out import is_open
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Discussing, GroupState
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion, Pass, Payload, Thinking
from ioa.protocol.policy import END, Policy


@dataclass(frozen=True)
class Offer:
    """What the holder of the floor may say now; it may always pass.

    Attributes:
        say: The words with which it has to open the node; None if it finds its own.
        next_speakers: Whom it may name as the next speaker. Whoever names nobody leaves it to the order.
        go: Where it may lead the group: nodes, or the end. Whoever names nothing stays, as long as the node goes on.
        may_conclude: Whether it may state the conclusion with the announcement that the discussion ends.
    """

    say: str | None = None
    next_speakers: tuple[AgentId, ...] = ()
    go: tuple[str, ...] = ()
    may_conclude: bool = False

    @property
    def kinds(self) -> frozenset[type[Payload]]:
        """The kinds of message that it may be said with."""
        return _ENDING if END in self.go else _TALKING


_TALKING: frozenset[type[Payload]] = frozenset({Discussion, Pass, Thinking})
_ENDING = _TALKING | {ConcludeGroupDiscussion}


def offer(policy: Policy, state: GroupState, agent_id: AgentId) -> Offer | None:
    """Say what a member may say in the discussion now; None if it has not the floor, or the discussion has ended."""
    stage, course = state.stage, state.course
    if course is None or not isinstance(stage, Discussing) or stage.holder != agent_id:
        return None
    return offer_in(scene_of(policy, state, course), state, agent_id)


def offer_in(scene: Scene, state: GroupState, agent_id: AgentId) -> Offer:
    """Say what the holder of the floor may say, in the scene that it is in."""
    if scene.course.opening:
        assert scene.node.opens is not None
        return Offer(say=scene.node.opens.say)
    me = state.number_of(agent_id)
    return Offer(
        next_speakers=tuple([scene.agent(number) for number in may_be_named(scene, me)]),
        go=_choices(scene, me),
        may_conclude=floor.concluder(state) == agent_id,
    )


def check_discussion(offered: Offer, said: Discussion) -> None:
    """Refuse what is not offered.

    Raises:
        IllegalEventError: It says what is.
    """
    if offered.say is not None and (said.content != offered.say or said.next_speaker is not None or said.go is not None):
        raise IllegalEventError(RejectionCode.BAD_OPENING, f"The node opens with these words and nothing else: {offered.say}")
    if said.next_speaker is not None and said.next_speaker not in offered.next_speakers:
        legal = f"name one of {', '.join(offered.next_speakers)}" if offered.next_speakers else "the policy chooses: name nobody"
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, f"{said.next_speaker} cannot be the next speaker; {legal}.")
    if said.go is not None and said.go not in offered.go:
        legal = f"there are {', '.join(offered.go)}" if offered.go else "the policy leads on by itself"
        raise IllegalEventError(RejectionCode.BAD_EXIT, f"No way out that you may choose leads to {said.go}; {legal}.")
    if said.go is not None and said.next_speaker is not None:
        raise IllegalEventError(RejectionCode.BAD_EXIT, "Choose a next speaker or a way out, and not both.")


def check_end(offered: Offer, said: ConcludeGroupDiscussion) -> None:
    """Refuse an end that is not offered.

    Raises:
        IllegalEventError: It says whose it is.
    """
    if END not in offered.go:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The policy ends the discussion, and offers you no end now.")
    if said.conclusion is not None and not offered.may_conclude:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The conclusion is stated by who leads; end the discussion without one.")


def _choices(scene: Scene, speaker: int) -> tuple[str, ...]:
    """Return where the speaker may lead the group. In a hub that is the hub's alone."""
    turns = scene.node.turns
    if turns.mode == "hub" and turns.by is not None and scene.holders(turns.by)[:1] != (speaker,):
        return ()
    ways = [way for way in scene.node.exits if way.by == "speaker" and is_open(scene, way)]
    return tuple(dict.fromkeys([way.to for way in ways if way.when is None or holds(way.when, scene)]))
