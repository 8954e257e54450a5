"""Every regular expression of libraries, services and example agents: those of modules, and where in the source others stand."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[3]
_SOURCES = tuple(_ROOT / folder for folder in ("libs", "services", "examples/agents", "examples/react"))
_MAY_IMPORT = re.compile(r"\b(?:import|from)\b[^\n]*\bre\b")
_METHODS = frozenset({"search", "match", "fullmatch", "sub", "subn", "split", "finditer", "findall"})


@dataclass(frozen=True)
class Source:
    """A module as it is written."""

    name: str
    tree: ast.Module


@dataclass(frozen=True)
class Found:
    """An expression of a module, and by which methods it is asked."""

    where: str
    pattern: re.Pattern[str]
    methods: frozenset[str]


def sources(*without: str) -> list[Source]:
    """The modules of libraries, services and example agents that have anything to do with `re`, but for packages `without`."""
    found: list[Source] = []
    for root in _SOURCES:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text("utf-8")
            # Looked at first, since reading all modules as trees takes each process of a test run seconds.
            if _MAY_IMPORT.search(text) and "re" in _imports(tree := ast.parse(text)) and not name.startswith(without):
                found.append(Source(name, tree))
    return found


def patterns(source: Source) -> list[Found]:
    """The expressions of a module, each once: those that it makes at its top, and those that stand in calls."""
    everywhere = _uses()
    found: dict[tuple[str, int], Found] = {}
    for name, value in vars(importlib.import_module(source.name)).items():
        for number, pattern in enumerate(_patterns_in(value)):
            where = f"{source.name}.{name}" + (f"[{number}]" if value is not pattern else "")
            methods = everywhere.get(name, frozenset()) if value is pattern else frozenset()
            found.setdefault((pattern.pattern, pattern.flags), Found(where, pattern, methods or frozenset({"finditer"})))
    for written in _written_in_calls(source):
        found.setdefault((written.pattern.pattern, written.pattern.flags), written)
    return list(found.values())


def hidden(source: Source) -> list[str]:
    """Where a module uses an expression that none of these functions finds: one that is made when a function is called."""
    inside = {
        id(node)
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    return [
        f"{source.name}:{call.lineno}"
        for name, call in _calls(source.tree)
        if name in (*_METHODS, "compile")
        and not isinstance(call.args[0], ast.Constant)
        and (id(call) in inside or name != "compile")
    ]


def _written_in_calls(source: Source) -> Iterator[Found]:
    """Yield the expressions that stand in a call, such as `re.sub(r"…", "", text)`."""
    for name, call in _calls(source.tree):
        if name in _METHODS and isinstance(call.args[0], ast.Constant):
            # The flags of a call are left out: they change which characters count, not how often one is looked at.
            yield Found(f"{source.name}:{call.lineno}", re.compile(str(call.args[0].value)), frozenset({name}))


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield which functions of `re` are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(at := node.func, ast.Attribute) and isinstance(at.value, ast.Name):
            if at.value.id == "re":
                yield at.attr, node


def _imports(tree: ast.Module) -> set[str]:
    """Which modules are imported, by whatever form."""
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@cache
def _uses() -> dict[str, frozenset[str]]:
    """By which methods each name is asked anywhere in the sources."""
    uses: dict[str, set[str]] = {}
    for root in _SOURCES:
        for path in root.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _METHODS:
                    uses.setdefault(node.value.id, set()).add(node.attr)
    return {name: frozenset(methods) for name, methods in uses.items()}


def _patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _patterns_in(key)
            yield from _patterns_in(one)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _patterns_in(one)
