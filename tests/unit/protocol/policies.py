"""Policies made at random that pass the checker, and the teams that ship. The choices come from outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import Node
from ioa.protocol.teams.checker import check
from ioa.protocol.teams.team_file import Filling, TeamSpec, seat_of

T = TypeVar("T")

SHIPPED = Path(__file__).parents[3] / "examples" / "teams"
_ROLES = ("red", "blue", "green")
_NODES = ("plan", "talk", "vote", "close")


GUARDS: Sequence[Any] = ({"not_empty": True}, {"longest": 200}, {"without": ["canaries"]})


class Choose(Protocol):
    """Choose one of several."""

    def __call__(self, options: Sequence[T], /) -> T:
        """Any of them, each with the same chance."""


def any_policy(choose: Choose) -> Policy:
    """A policy of up to three roles and four nodes that has no error."""
    while True:
        policy = _any(choose)
        if not any(one.kind == "error" for one in check(policy)):
            return policy


def any_scoped_policy(choose: Choose) -> Policy:
    """Such a policy in which something is kept from some."""
    while True:
        policy = any_policy(choose)
        names = [role.name for role in policy.roles]
        heard: Sequence[Any] = (None, "node", *((name,) for name in names), {names[0]: (names[-1],)})
        roles = [
            role.model_copy(update={"secret": choose((True, False)), "hears_all": choose((True, False, False))})
            for role in policy.roles
        ]
        nodes = [_heard(node, choose(heard), choose(("after", "never"))) for node in policy.nodes]
        scoped = Policy.model_validate(
            policy.model_copy(update={"roles": tuple(roles), "nodes": tuple(nodes), "ends": "leader"}).model_dump()
        )
        if scoped.hides and not any(one.kind == "error" for one in check(scoped)):
            return scoped


def any_forked_policy(choose: Choose) -> Policy:
    """A policy whose first node forks to two others, for which the last one waits."""
    while True:
        policy = _any(choose)
        if len(policy.nodes) < 4:
            continue
        fork, one, other, last = policy.nodes
        ways = [{"to": node.name, "by": "rule" if fork.turns.mode == "together" else "speaker"} for node in (one, other)]
        changes: Sequence[Any] = ({"take": "all", "exits": ways}, *(({"exits": [{"to": last.name}]},) * 2), {"join": "all"})
        nodes = [{**node.model_dump(), "max": 2, **more} for node, more in zip(policy.nodes, changes, strict=True)]
        forked = Policy.model_validate({**policy.model_dump(), "nodes": nodes, "watchers": ()})
        if not any(finding.kind == "error" for finding in check(forked)):
            return forked


def _heard(node: Node, heard_by: Any, peers: str) -> Node:
    if isinstance(heard_by, dict) and not heard_by.keys() <= {*node.roles}:
        heard_by = "node"
    turns = node.turns.model_copy(update={"peers": peers}) if node.sits_apart else node.turns
    return node.model_copy(update={"heard_by": heard_by, "turns": turns})


def any_team(choose: Choose) -> TeamSpec:
    """A team around such a policy."""
    policy = any_policy(choose)
    fillings = tuple(_filling(role.name, choose) if not role.human else _person(role.name, choose) for role in policy.roles)
    told = {
        "team": choose(("t", 'a "quoted" tëam')),
        "goal": choose(("", "Line one.\nLine \\ two\t.")),
        "max_turns": choose((1, 7, 100)),
    }
    return TeamSpec.model_validate({**told, "policy": policy, "fillings": fillings})


def _filling(role: str, choose: Choose) -> Filling:
    how: dict[str, Any] = choose(({"agents": ("a",)}, {"agents": ("a", "b")}, {"agents": ("pool",), "count": 2}, {"need": "sums"}))
    return Filling(role=role, **how)


def _person(role: str, choose: Choose) -> Filling:
    return Filling(role=role, agents=(seat_of(choose((role, "anna"))),))


def _any(choose: Choose) -> Policy:
    roles, names = _ROLES[: choose((1, 2, 3))], _NODES[: choose((1, 2, 3, 4))]
    return Policy.model_validate(
        {
            "roles": [
                {
                    "name": name,
                    "prompt": choose(("", "Play.")),
                    "at_most": choose((None, None, 3)),
                    "timeout": choose((None, 20)),
                    "human": choose((False, False, False, True)),
                    "memory": choose((None, None, {"window": 3}, {"last": {name: 2}, "relevant": 1})),
                }
                for name in roles
            ],
            "nodes": [_any_node(name, roles, names, choose) for name in names],
            "leader": choose((None, *roles)),
            "ends": choose(("leader", "leader", "last")),
            "seed": choose((0, 7)),
            "silent": choose(("skip", "skip", "skip", "end")),
            "watchers": [_any_watcher(roles, names, choose) for _ in range(choose((0, 0, 0, 1, 2)))],
        }
    )


def _any_watcher(roles: Sequence[str], names: Sequence[str], choose: Choose) -> dict[str, Any]:
    may = [verb for verb in ("remove", "add", "hint", "end", "go") if choose((True, True, False))] or ["remove"]
    go = names[: choose((1, 2))] if "go" in may else ()
    told = {"role": choose(roles), "node": choose((None, *names)), "by": choose((None, *roles)), "every": choose((1, 2))}
    return {**told, "may": may, "go": go}


def _any_node(name: str, roles: Sequence[str], names: Sequence[str], choose: Choose) -> dict[str, Any]:
    some = [role for role in roles if choose((True, True, False))] or [roles[0]]
    mode = choose(("order", "nominate", "random", "hub", "hub", "hub", "follow", "together", "together", "ask", "ask"))
    turns: dict[str, Any] = {"mode": mode, "repeat": choose((False, True)), "tries": choose((1, 2, 3))}
    if mode == "hub":
        turns["by"] = choose(some)
    if mode == "ask":
        turns["by"] = choose(roles)
    if mode == "together":
        turns["peers"] = choose(("after", "at_once"))
    if mode == "follow":
        turns["follow"] = {choose(some): choose(some)}
    form = _any_form(some, choose)
    review: Any = choose(
        (None, None, None, {"by": choose(roles), "tries": choose((1, 3)), "then": choose(("drop", "pass", "end"))})
    )
    review, lets = (None, (False,)) if mode == "together" else (review, (False, False, review is None))
    return {
        "name": name,
        "roles": some,
        "turns": turns,
        "opens": choose((None, {"role": choose(some)}, {"role": choose(some), "say": f"Welcome to {name}."})),
        "prompt": choose(("", "Be brief.")),
        "max": choose((None, 2, 5, 9)),
        "exits": [_any_exit((*names, "end", "end"), choose(roles), some, form, choose) for _ in range(choose((0, 1, 2, 3)))],
        "form": form,
        "asked": choose(("round", "turn")),
        "again": choose(("anew", "continue")),
        "visits": choose((None, None, 1, 2)),
        "guards": choose(((), (), (), GUARDS)),
        "review": review,
        "take": choose(("one", "one", "all")),
        "join": choose(("any", "any", "all")),
        "writes": choose(((), (), ("plot",), ("plot", "notes"))),
        "asks": choose(lets),
        "tasks": choose(lets),
        "invites": mode != "together" and choose((False, False, True)),
    }


def _any_form(roles: Sequence[str], choose: Choose) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = [
        {"name": "vote", "kind": "member", "role": choose((None, *roles))},
        {"name": "done", "kind": "yes_no"},
        {"name": "score", "kind": "number", "lowest": 1, "highest": choose((None, 10))},
        {"name": "verdict", "kind": "option", "options": ["accept", choose(("revise", "a|b?"))]},
        {"name": "why", "kind": "text"},
    ]
    some = [field for field in fields if choose((False, False, True))]
    return [{**field, "required": choose((True, False))} for field in choose(([], some))]


def _any_exit(
    targets: Sequence[str], judge: str, roles: Sequence[str], form: Sequence[dict[str, Any]], choose: Choose
) -> dict[str, Any]:
    whens: list[dict[str, Any] | None] = [None, None, {"turns": 2}, {"rounds": 1}, {"visits": 2}, {"turns": 1, "visits": 2}]
    whens += [{"left": choose(roles), "at_most": 1}, *(_any_test(field, roles, choose) for field in form)]
    votes = [field["name"] for field in form if field["kind"] == "member"]
    remove = {"field": "vote", "by": choose(("most", "last")), "ties": choose(("none", "first"))} if votes else None
    by = choose(("rule", "rule", "speaker", judge))
    return {"to": choose(targets), "when": choose(whens), "by": by, "remove": choose((None, remove))}


def _any_test(field: dict[str, Any], roles: Sequence[str], choose: Choose) -> dict[str, Any]:
    like: dict[str, Any] = {"like": choose(("*a*", "r?vise", "#*"))}
    right: dict[str, dict[str, Any]] = {
        "member": {"equals": "ada"},
        "yes_no": {"equals": choose((True, False))},
        "number": {"equals": 3},
        "option": choose(({"equals": "accept"}, like)),
        "text": choose(({"equals": "mine"}, like)),
    }
    by = choose(("last", "any", "all", "most"))
    return {
        "field": field["name"],
        "by": by,
        "of": choose((None, *roles)),
        **(right[field["kind"]] if choose((True, False)) else {}),
    }
