"""What a process may have to hold fits into its container: the table of docs/threats/bounds.md, by the code and the chart."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_ROOT = Path(__file__).parents[3]
_ROW = re.compile(r"^\| (?P<containers>[\w, ]+) \| (?P<what>[^|]+) \| (?P<most>[^|]+) \| (?P<mb>\d+) \|$", re.MULTILINE)
_MI, _GI = 2**20, 2**30


class _Held(NamedTuple):
    containers: list[str]
    what: str
    most: str
    mb: int


def _rows() -> list[_Held]:
    page = (_ROOT / "docs/threats/bounds.md").read_text()
    table = page.partition("## What a process holds")[2].partition("\n## ")[0]
    return [_Held(row["containers"].split(", "), row["what"], row["most"], int(row["mb"])) for row in _ROW.finditer(table)]


def _value(named: str) -> float:
    """A number, or what bears a name in the code."""
    if not named.startswith("`"):
        return float(named.replace(",", ""))
    module, _, name = named.strip("`").rpartition(".")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError:
        module, _, holder = module.rpartition(".")
        found = getattr(import_module(module), holder)
    return float(getattr(found, name))


def _limit(container: str) -> int:
    """What the chart gives a container."""
    values = yaml.safe_load((_ROOT / "helm/ioa/values.yaml").read_text())
    of_all, own = values["workloads"]["resources"], values["services"][container].get("resources", {})
    told = own.get("limits", {}).get("memory", of_all["limits"]["memory"])
    return int(told[:-2]) * {"Mi": _MI, "Gi": _GI}[told[-2:]]


def test_each_number_is_the_codes() -> None:
    """Else a bound grows, and nobody adds it up."""
    rows = _rows()
    counted = [sum(math.prod(map(_value, part.split(" × "))) for part in row.most.split(" + ")) for row in rows]
    assert len(rows) > 10
    assert [(row.what, row.mb) for row in rows] == [
        (row.what, math.ceil(size / 1e6)) for row, size in zip(rows, counted, strict=True)
    ]


def test_all_of_it_fits_into_the_container() -> None:
    """At once: a stranger has no reason to do one thing after the other. A tenth is left for what is in hand."""
    held = defaultdict[str, int](int)
    for row in _rows():
        for container in row.containers:
            held[container] += row.mb
    assert set(held) == {"groups", "router"}
    assert {name: size <= 0.9 * _limit(name) / 1e6 for name, size in held.items()} == {"groups": True, "router": True}, held
