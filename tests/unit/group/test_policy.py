"""Groups under a policy: each rule with a fragment, a story and the floors that follow."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ioa.group.events import MessageRefused, Said
from ioa.group.policy.deciding import MAX_STRUCK
from ioa.group.policy.exits import looks_like
from ioa.group.state import Asking, Discussing, Ended, Gathering
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    Pass,
    PassCause,
    Payload,
)
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import FieldValue
from ioa.protocol.teams.team_file import team_of
from tests.rig.cases import cases
from tests.unit.group.scenario import COMM, Scenario, launched_under, said

A, B, C = "ada", "bob", "eve"
CAST: Mapping[str, Sequence[str]] = {"a": [A], "b": [B], "c": [C], "ab": [A, B], "bc": [B, C], "all3": [A, B, C]}


def policy_of(*nodes: Mapping[str, Any], **top: Any) -> Policy:
    """A policy of these nodes, whose roles are those that they name; it has no error."""
    more = top.pop("roles", {})
    named = dict.fromkeys([role for node in nodes for role in (*node["roles"], *_reviewers(node))] + list(more))
    roles = {name: _filled(more.get(name, {})) for name in named}
    return team_of({"team": "t", "roles": roles, "nodes": list(nodes), **top}).policy


def _filled(told: Mapping[str, Any]) -> Mapping[str, Any]:
    return told if "human" in told else {"agent": "any", **told}


def _reviewers(node: Mapping[str, Any]) -> Sequence[str]:
    review = node.get("review")
    return () if review is None else (review if isinstance(review, str) else review["by"],)


def group(*nodes: Mapping[str, Any], max_turns: int = 100, **top: Any) -> Scenario:
    """Ada, Bob and Eve in a group under a policy; Ada owns it."""
    return launched_under(policy_of(*nodes, **top), CAST, A, B, C, max_turns=max_turns)


@dataclass(frozen=True)
class Told:
    """A story: each word is an event.

    `says` the holder says something; `talks:b` says "b"; `says:bob` names Bob, `says:bob,eve` both side by side;
    `says{vote=bob,done=yes}` fills a form in; `writes:x` writes x; `invites:joe/b` has Joe join; `goes:x` leads to x; `again` says
    a draft once more; `opens:Go.` says the given words; `decides:x`, or with members `decides:remove/bob+eve`; `errs` chooses what
    is no option; `silent` lets the floor run out; `passes`; `away` passes since the model is; `ends` announces the end; `-bob` is
    lost; `+bob` is back. `says@bob` is Bob's, else it is of the first who may speak.
    """

    story: Scenario

    def word(self, word: str) -> Told:  # noqa: C901 - one flat case for each verb
        """Go one event further."""
        story = self.story
        if word[0] in "-+":
            return Told(story.loses(word[1:]) if word[0] == "-" else story.regains(word[1:]))
        found = _WORD.fullmatch(word)
        assert found is not None, word
        verb, what, words = found["verb"], found["what"] or "", f"Point {len(story.log)}."
        who, fields = found["who"] or next(iter(story.state.floor), "nobody"), _fields(found["fields"] or "")
        names = [AgentId(name) for name in what.split(",") if name]
        match verb:
            case "says" if len(names) > 1:
                payload: Payload = Discussion(content=words, next_speakers=tuple(names), fields=fields)
            case "says":
                payload = Discussion(content=words, next_speaker=names[0] if names else None, fields=fields)
            case "goes":
                payload = Discussion(content=words, go=what, fields=fields)
            case "invites":
                name, _, role = what.partition("/")
                return Told(story.invites(who, name, role or None))
            case "writes":
                payload = Discussion(content=words, writes={what: ""})
            case "decides":
                choice, _, members = what.partition("/")
                payload = Decision(
                    choice=choice, content="So be it.", members=tuple(map(AgentId, filter(None, members.split("+"))))
                )
            case "again":
                payload = last_draft(story)
            case "away":
                payload = Pass(cause=PassCause.MODEL_UNAVAILABLE)
            case "errs":
                assert story.refusal(said(who, Decision(choice="nowhere"), story.state.turn, story.now)).code == "bad_decision"
                about = {"by": who, "turn": story.state.turn, "message_id": f"m{len(story.log)}", "code": "bad_decision"}
                return Told(story.happens(MessageRefused.model_validate({"at": story.now, **about})))
            case "opens" | "talks":
                payload = Discussion(content=what)
            case "passes":
                payload = Pass(cause=PassCause.NOTHING_TO_ADD)
            case "ends":
                payload = ConcludeGroupDiscussion()
            case _:
                assert verb == "silent"
                return Told(story.timer())
        return Told(story.speaks(who, payload))

    def where(self) -> str:
        """The node and who has the floor, all who have, or who is asked; or how the discussion has ended."""
        state, policy = self.story.state, self.story.policy
        assert policy is not None and state.course is not None
        match state.stage:
            case Discussing(holder=holder):
                return f"{policy.nodes[state.course.node].name}:{holder}"
            case Gathering() | Asking():
                sign = "?" if isinstance(state.stage, Asking) else ":"
                return f"{policy.nodes[state.course.node].name}{sign}{'+'.join(state.floor)}"
            case Ended(reason=reason):
                return f"ended:{reason}"
            case _:
                return f"concluding:{state.floor_holder}"


def last_draft(story: Scenario) -> Discussion:
    """What the floor holder said last."""
    own = (event.message for event in reversed(story.log) if isinstance(event, Said))
    return next(one.payload for one in own if isinstance(one.payload, Discussion) and one.header.sender == story.state.floor_holder)


_WORD = re.compile(r"(?P<verb>[a-z]+)(?:@(?P<who>\w+))?(?:\{(?P<fields>[^}]*)\})?(?::(?P<what>.*))?")


def _fields(text: str) -> Mapping[str, FieldValue]:
    """Read `vote=bob,done=yes,score=3`."""
    told: dict[str, FieldValue] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        told[name] = value == "yes" if value in ("yes", "no") else int(value) if value.isdecimal() else value
    return told


def floors(story: Scenario, words: str) -> str:
    """Where the group stood at first and after each event."""
    told = [Told(story)]
    for word in words.split():
        told.append(told[-1].word(word))
    return " ".join(one.where() for one in told)


X: Mapping[str, Any] = {"name": "x", "roles": ["a", "b", "c"]}
Y: Mapping[str, Any] = {"name": "y", "roles": ["c"]}

REVIEWED: Mapping[str, Any] = {"name": "x", "roles": ["a", "b"], "review": "c"}


def watched(role: str, **more: Any) -> Mapping[str, Any]:
    """A policy with a watcher that may remove and end."""
    return {"watchers": [{"role": role, "may": ["remove", "hint", "end"], **more}]}


RULES = cases("rules")


@pytest.mark.parametrize(("nodes", "top", "story", "expected"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(nodes: Sequence[Mapping[str, Any]], top: Mapping[str, Any], story: str, expected: str) -> None:
    """Who has the floor follows from the policy and from what was said, and from nothing else."""
    assert floors(group(*nodes, **top), story) == expected


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_random_order_follows_from_the_seed_and_the_group(seed: int) -> None:
    """It is the same each time, and nobody speaks twice in a row."""
    expected, last = [], ""
    for turn in range(6):
        choices = [one for one in (A, B, C) if one != last]
        drawn = hashlib.sha256(f"{seed}/{COMM}/x/1/{turn}".encode()).digest()[:8]
        last = choices[int.from_bytes(drawn, "big") % len(choices)]
        expected.append(f"x:{last}")
    assert floors(group({**X, "turns": "random", "max": 9}, seed=seed), "says " * 5).split() == expected


def test_what_is_struck_does_not_grow_without_end() -> None:
    """The state tells all of it in each entry: behind so many stretches a watcher is offered no node any more."""
    again = watched("b", node="y", may=["end", "go"], go=["y"])
    ways = [{"to": "x"}, {"to": "end", "by": "speaker"}]
    told = Told(group({**X, "max": 1, "then": "y"}, {**Y, "max": 1, "exits": ways}, max_turns=1_000, **again))
    for _ in range(MAX_STRUCK):
        for word in "says says decides:y says decides:nothing".split():
            told = told.word(word)
    stage, course = told.word("says").word("says").story.state.stage, told.story.state.course
    assert isinstance(stage, Asking) and course is not None
    assert (stage.options, len(course.struck)) == (("nothing", "end"), MAX_STRUCK)


@pytest.mark.parametrize(
    ("pattern", "match", "other"),
    [
        ("bye", "BYE", "bye!"),
        ("*bye*", "well, bye then", "by"),
        ("room #?", "Room 1b", "room b1"),
        ("*.*", "a.b\nc", "a b"),
        ("*ab*b", "abab", "aba"),
        ("[a]+", "[A]+", "aa"),
        ("*######*", "call 123456 now", "12345 6"),
        ("?", "\n", ""),
    ],
)
def test_pattern_matches_its_texts_in_either_case(pattern: str, match: str, other: str) -> None:
    """A star is any text, `?` a character, `#` a digit; other characters stand for themselves."""
    assert (looks_like(match, pattern), looks_like(other, pattern)) == (True, False)
