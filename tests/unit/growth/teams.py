"""Team files that take long to read: as many parts as fit, mistakes that are found one by one, names that are nearly right."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

_LETTERS = "abcdefgh" * 4
_NODE_BYTES = 60


def _names(salt: int, many: int) -> list[str]:
    chance = random.Random(salt)
    return [f"n{''.join(chance.sample(_LETTERS, 31))}" for _ in range(many)]


def team_file(nodes: list[dict[str, Any]], salt: int, roles: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write a team file."""
    return {"team": f"t{salt}", "roles": {"a": "ada"} if roles is None else roles, "nodes": nodes}


def forking_nodes(exits: int, **way: Any) -> list[dict[str, Any]]:
    """Write as many nodes as may be, of which as many fork and join as may, each with so many exits besides its last one."""
    return [
        {
            "name": f"n{at}",
            "roles": ["a"],
            "max": 1,
            "take": "all" if at < 16 else "one",
            "join": "all" if at >= 112 else "any",
            "exits": [*({"to": f"n{(at + ahead) % 128}", **way} for ahead in range(1, exits + 1)), {"to": "end"}],
        }
        for at in range(128)
    ]


def _named_nearly_so(size: int, salt: int) -> dict[str, Any]:
    names = _names(salt, max(1, min(128, size // _NODE_BYTES)))
    wrong = _names(salt + 1, len(names))
    return team_file([{"name": name, "roles": ["a"], "max": 1, "then": to} for name, to in zip(names, wrong, strict=True)], salt)


def _with_roles_nearly_so(size: int, salt: int) -> dict[str, Any]:
    names = _names(salt, 64)
    nodes = [{"name": f"n{at}", "roles": [wrong]} for at, wrong in enumerate(_names(salt + 1, max(1, min(128, size // 50))))]
    return team_file(nodes, salt, dict.fromkeys(names, "ada"))


def _wrong_in_the_end(size: int, salt: int) -> dict[str, Any]:
    """Each reading finds one of them: all that stands before is read again."""
    exits = [{"to": "end", "when": {"turns": 1}}] * max(1, min(31, size // (128 * 30)))
    nodes = [{"name": f"n{at}", "roles": ["a"], "max": 1, "exits": [*exits]} for at in range(128)]
    for node in nodes[-24:]:
        node["exits"] = [*exits, {"to": "end", "when": {"turns": "x"}}]
    return team_file(nodes, salt)


def _large(size: int, salt: int) -> dict[str, Any]:
    return team_file(forking_nodes(max(1, min(31, size // (128 * 30))), when={"visits": 1}), salt)


def _heard_by_many(size: int, salt: int) -> dict[str, Any]:
    roles = [f"r{at}" for at in range(64)]
    nodes = [{"name": f"n{at}", "roles": roles, "heard_by": roles} for at in range(max(1, min(128, size // 900)))]
    for at, node in enumerate(nodes[:-1]):
        node["then"] = f"n{at + 1}"
    return team_file(nodes, salt, dict.fromkeys(roles, "ada"))


def _with_options(size: int, salt: int) -> dict[str, Any]:
    return team_file([{"name": "n", "roles": ["a"], "form": {f"f{at}": "a|" * (size // 32) for at in range(16)}}], salt)


def _with_prompts(size: int, salt: int) -> dict[str, Any]:
    nodes = [{"name": f"n{at}", "roles": ["a"], "prompt": "é" * (size // 260), "then": f"n{at + 1}"} for at in range(127)]
    return team_file([*nodes, {"name": "n127", "roles": ["a"]}], salt)


TEAMS: Mapping[str, Callable[[int, int], dict[str, Any]]] = {
    "nodes that are named nearly so": _named_nearly_so,
    "roles that are named nearly so": _with_roles_nearly_so,
    "mistakes in the end": _wrong_in_the_end,
    "as many exits as fit": _large,
    "as many hearers as fit": _heard_by_many,
    "as many options as fit": _with_options,
    "long prompts": _with_prompts,
}
"""By what they are made of."""
