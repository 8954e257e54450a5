"""What the pages say can be relied on: code compiles, names exist, links lead somewhere, and nothing comes from another host."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.packaging.readme_session import Block, blocks_of
from tools.cli_page import commands
from tools.site import loaded_from_elsewhere

ROOT = Path(__file__).parents[3]
PAGES = sorted({*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "helm").rglob("*.md")})
_OUTSIDE_OF_DOCS = [page for page in PAGES if (ROOT / "docs") not in page.parents]
_LINK = re.compile(r"\]\((?P<path>[^()\s#:]*)(?:#(?P<anchor>[^()\s]+))?\)")


def _blocks(page: Path) -> list[Block]:
    return blocks_of(page.read_text(encoding="utf-8"), also=("yaml", "toml"))


def _python(page: Path) -> list[ast.Module]:
    return [ast.parse(block.body, f"{page.name}:{block.line}") for block in _blocks(page) if block.kind == "python"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_can_be_read(page: Path) -> None:
    """Python compiles, shell commands parse, JSON, YAML and TOML load, and a fence of any other kind is refused."""
    for block in _blocks(page):
        match block.kind:
            case "python":
                compile(block.body, f"{page.name}:{block.line}", "exec")
            case "json":
                json.loads(block.body)
            case "yaml":
                yaml.safe_load(block.body)
            case "toml":
                tomllib.loads(block.body)
            case "sh":
                shlex.split(block.body, comments=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_imports_of_a_page_exist(page: Path) -> None:
    """An import can be copied."""
    missing = [
        f"{node.module}.{alias.name}"
        for tree in _python(page)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0].startswith("ioa")
        for alias in node.names
        if not hasattr(import_module(node.module), alias.name) and find_spec(f"{node.module}.{alias.name}") is None
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    """With their options."""
    known = {command.name: " ".join(each.name for each in command.parameters) for command in commands()}
    shown = [
        line for block in _blocks(page) if block.kind in ("sh", "text") for line in block.body.replace("\\\n", " ").splitlines()
    ]
    wrong = []
    for line in shown:
        words = re.sub(r"\s#\s.*", "", line.removeprefix("$ ")).split()
        if words[:1] != ["ioa"]:
            continue
        name = next(" ".join(words[:length]) for length in (4, 3, 2, 1) if " ".join(words[:length]) in known)
        own = words[: words.index("--")] if "--" in words else words  # the rest is for another program
        options = [word.partition("=")[0] for word in own if word.startswith("--")]
        wrong += [line for option in options if option not in {*known[name].replace(",", "").split(), "--help", "--version"}]
        wrong += [line] if name == "ioa" and len(words) > 1 and not options else []
    assert wrong == []


@pytest.mark.parametrize("page", _OUTSIDE_OF_DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_outside_of_the_site_lead_somewhere(page: Path) -> None:
    """The build of the site checks its own links."""
    broken = []
    for link in _LINK.finditer(page.read_text(encoding="utf-8")):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        if not target.exists() or (link["anchor"] and link["anchor"] not in _anchors(target)):
            broken.append(link.group())
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_decision_is_listed() -> None:
    """In order."""
    folder = ROOT / "docs" / "adr"
    listed = re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(file.name for file in folder.glob("[0-9]*.md"))


@pytest.mark.parametrize(
    ("html", "refused"),
    [
        ('<script src="https://unpkg.com/mermaid"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example.com/a.css">', True),
        ('<link rel="canonical" href="https://ioa.example.com/">', False),
        ('<a href="https://nats.io">NATS</a> <img src="assets/a.png">', False),
    ],
)
def test_a_page_that_loads_from_another_host_is_noticed(html: str, refused: bool) -> None:
    """Scripts, styles, fonts and pictures are the site's own; links may lead anywhere."""
    assert bool(loaded_from_elsewhere(html)) is refused
