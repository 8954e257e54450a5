"""The house: every package has its layer, a module that is named by a string is there, and nothing waits in an `except*`."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"(?:ioa|ioa_[a-z]+|tests\.rig|benchmarks|tools)(?:\.[a-z_]+)+")
QUOTED = re.compile(r"[\"'](?:ioa|tests\.rig|benchmarks|tools)[._]")
ELSEWHERE = re.compile(r"ioa\.v1\..*|ioa\.(?:dead|goal|result)s?|.*\.(?:py|typed|yaml|toml|json|jsonl|md|conf|log|txt|sqlite)")
"""Subjects of NATS and names of files look like modules."""
SPEAKS_HTTP = {
    "libs/ioa/adopt/endpoint.py",  # with servers that do tasks
    "libs/ioa/adapters/http_answers.py",  # for all servers of others
    "libs/ioa/adapters/secret_stores/kubernetes.py",  # with the cluster's own
    "libs/ioa/adapters/mcp_client.py",  # by the library of MCP
}


def sources(*folders: str) -> Iterator[Path]:
    """All files of Python in these folders."""
    for folder in folders:
        yield from (ROOT / folder).rglob("*.py")


def strings(path: Path) -> Iterator[str]:
    """The strings of a file but for its docstrings, which are prose."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in prose:
            yield node.value


def test_every_package_has_its_layer() -> None:
    """A new package or module needs a layer."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["id"] == "layers")
    placed = {name.strip() for layer in layers for name in layer.split("|")}
    library = {f"ioa.{name}" for name in _modules_in(ROOT / "libs/ioa")}
    assert placed == library | _modules_in(ROOT / "services")


def _modules_in(folder: Path) -> set[str]:
    modules = {path.stem for path in folder.glob("[!_]*.py")}
    return modules | {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}


def test_a_module_that_is_named_is_there() -> None:
    """A rename does not change strings."""
    files = sources("libs", "services", "tests", "benchmarks", "tools")
    suspects = [path for path in files if QUOTED.search(path.read_text(encoding="utf-8"))]  # reading all as trees takes seconds
    named = {text.partition(":")[0] for path in suspects for text in strings(path)}
    assert [name for name in named if OURS.fullmatch(name) and not ELSEWHERE.fullmatch(name) and not _is_there(name)] == []


def _is_there(name: str) -> bool:
    """Whether it is a module, or something in one."""
    for module in (name, name.rpartition(".")[0]):
        try:
            if find_spec(module) is not None:
                return True
        except ModuleNotFoundError:
            continue
    return False


def test_the_library_names_no_service() -> None:
    """Neither by an import, which a contract forbids, nor by a string."""
    named = {
        str(path.relative_to(ROOT))
        for path in sources("libs")
        for text in strings(path)
        if re.fullmatch(r"ioa_(?:registry|discovery|groups|router|testkit)(?:\.\w+)*", text)
    }
    assert not named


def test_no_public_class_has_the_name_of_another() -> None:
    """A reader who meets a name knows which class it is."""
    places: dict[str, list[str]] = {}
    for path in sources("libs", "services"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_task_groups_and_limits_drop_no_cancellation() -> None:
    """Those of asyncio do in older versions of CPython."""
    theirs = re.compile(r"asyncio\.(?:TaskGroup|timeout|timeout_at)\(")
    assert [path for path in sources("libs", "services") if theirs.search(path.read_text(encoding="utf-8"))] == []


def test_what_servers_of_others_answer_comes_by_one_client() -> None:
    """It limits answers. `SPEAKS_HTTP` lists the other clients."""
    made = r"httpx2?\.(?:(?:Async)?Client|get|post|put|patch|delete|head|request|stream)\("
    theirs = re.compile(rf"{made}|class \w+\(httpx2?\.(?:Async)?Client|from httpx2? import|import (?:aiohttp|requests)\b|urlopen\(")
    files = sources("libs", "services", "examples")
    found = {str(path.relative_to(ROOT)) for path in files if theirs.search(path.read_text(encoding="utf-8"))}
    assert found == SPEAKS_HTTP


def test_no_python_is_started_that_reads_where_it_is_started() -> None:
    """`-c` and `-m` take modules out of the folder one is in, before the library: another user's, where that is `/tmp`."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources("libs", "services")
        if "sys.executable" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.List, ast.Tuple, ast.Call))
        for program, flag in pairwise(map(ast.unparse, node.args if isinstance(node, ast.Call) else node.elts))
        if program == "sys.executable" and flag not in ("'-P'", "'-I'")
    ]
    assert found == []


def test_nothing_waits_in_an_except_star() -> None:
    """Before CPython 3.11.4, a cancellation in it becomes an exception group."""
    waiting = ast.Await, ast.AsyncFor, ast.AsyncWith
    trees = [(path, path.read_text(encoding="utf-8")) for path in sources("libs", "services", "tests", "examples", "benchmarks")]
    found = [
        f"{path.relative_to(ROOT)}:{one.lineno}"
        for path, text in trees
        if "except*" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.TryStar)
        for handler in node.handlers
        for one in ast.walk(handler)
        if isinstance(one, waiting)
    ]
    assert found == []
