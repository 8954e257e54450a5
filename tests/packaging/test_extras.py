"""What `pip install` brings, for the base and for each extra, in environments that have nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment

pytestmark = pytest.mark.package

# What no agent should have to carry.
_HEAVY = {
    "mcp",
    "numpy",
    "onnxruntime",
    "pandas",
    "qdrant-client",
    "sentence-transformers",
    "tokenizers",
    "torch",
}

_INSTALLED = """
import importlib.metadata, json
print(json.dumps({d.name.lower().replace("_", "-"): sum(f.size or 0 for f in d.files) for d in importlib.metadata.distributions()}))
"""

# Imports every module of the named packages and prints, for each that cannot be, the error's class and what it says.
_IMPORT_ALL = """
import importlib, json, pkgutil
failed = {}
for package in PACKAGES:
    package = importlib.import_module(package)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:
                failed[module.name] = [type(error).__name__, str(error)]
print(json.dumps(failed))
"""


def _unimportable(environment: Environment, *packages: str) -> dict[str, list[str]]:
    failed: dict[str, list[str]] = json.loads(environment.python(_IMPORT_ALL.replace("PACKAGES", repr(packages))))
    return failed


def test_the_base_is_small(bare: Environment) -> None:
    """Without an extra nothing heavy is installed, and all of it stays below 25 MB."""
    installed: dict[str, int] = json.loads(bare.python(_INSTALLED))
    assert (_HEAVY & installed.keys(), sum(installed.values()) < 25_000_000) == (set(), True), installed


def _name_their_extra(failed: dict[str, list[str]], extra: str) -> bool:
    return all(why[0] == "MissingExtraError" and f"'internet-of-agents[{extra}]'" in why[1] for why in failed.values())


def test_everything_but_discovery_and_a2a_imports_on_the_base(bare: Environment) -> None:
    """The library, the command line, the test doubles and three of the services need no extra to be imported, except one module.

    The module consists of calls of the A2A library, and its error names the extra.
    """
    failed = _unimportable(bare, "ioa", "ioa_registry", "ioa_groups", "ioa_router")
    assert (set(failed), _name_their_extra(failed, "a2a")) == ({"ioa.adopt.remote_agents"}, True), failed


def test_discovery_without_its_extra_names_the_extra(bare: Environment) -> None:
    """At least one module cannot be imported, and each error names the extra."""
    failed = _unimportable(bare, "ioa_discovery")
    assert (bool(failed), _name_their_extra(failed, "discovery")) == (True, True), failed


@pytest.mark.parametrize(
    ("code", "missing", "extra"),
    [
        ("import ioa_authcallout.settings", "The library for tokens is", "authcallout"),
        ("import ioa.adapters.otlp as o; o.export_spans('1', [])", "The export of traces is", "otel"),
        ("import ioa.adapters.nats.wire.embedded_server as n; n.find_nats_server()", "nats-server is", "server"),
        (
            "import asyncio, ioa.react.mcp_servers as m; asyncio.run(m.open_servers([m.mcp('touch started')]).__aenter__())",
            "The client of MCP servers is",
            "mcp",
        ),
    ],
)
def test_use_without_its_extra_names_the_extra(bare: Environment, code: str, missing: str, extra: str) -> None:
    """On the base the error contains the command that installs it, and no command of a server is run."""
    caught = f"try: {code}\nexcept Exception as e: print(type(e).__name__, e)"
    wanted = f"MissingExtraError {missing} not installed. Install it with: pip install 'internet-of-agents[{extra}]'"
    assert (bare.python(caught), (bare.folder / "started").exists()) == (wanted, False)


def test_torch_without_its_extra_names_the_extra(environment_with: Callable[[str], Environment]) -> None:
    """Discovery works without torch, and asking for the torch embedder then names the extra that brings it."""
    light = environment_with("discovery")
    code = """
from ioa_discovery.torch_encoder import SentenceTransformerEncoder
try: SentenceTransformerEncoder("any")
except Exception as e: print(type(e).__name__, e.hint)
"""
    assert (_unimportable(light, "ioa_discovery"), light.python(code)) == (
        {},
        "MissingExtraError Install it with: pip install 'internet-of-agents[sentence-transformers]'",
    )


def test_every_file_of_packages_and_examples_is_in_the_wheel(bare: Environment) -> None:
    """Python or not; the examples are below the folder where `ioa up` looks for them."""
    code = "import json, ioa, ioa.cli.up as up; print(json.dumps([ioa.__path__[0], str(up.examples())]))"
    library, examples = map(Path, json.loads(bare.python(code)))
    services = [(source, library.parent / source.name) for source in (ROOT / "services").glob("ioa_*")]
    for source, installed in [(ROOT / "libs" / "ioa", library), (ROOT / "examples", examples), *services]:
        assert installed.is_relative_to(bare.folder)
        assert _files(source) - _files(installed) == set()


def _files(folder: Path) -> set[Path]:
    return {file.relative_to(folder) for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"}


def test_the_extra_server_brings_the_server(environment_with: Callable[[str], Environment]) -> None:
    """With the extra, the server is found beside the environment's Python and starts."""
    code = """
import asyncio, pathlib, sys
from ioa.adapters.nats.wire.embedded_server import find_nats_server, open_nats_server
async def main():
    async with open_nats_server(pathlib.Path(sys.prefix) / "data", None) as server:
        print(find_nats_server().parent, server.pid > 0)
asyncio.run(main())
"""
    environment = environment_with("server")
    assert environment.python(code) == f"{environment.scripts} True"


@pytest.mark.parametrize(("extras", "entrance"), [("a2a", "a2a"), ("gateway,mcp", "mcp")])
def test_an_entrance_has_all_that_its_extra_brings(
    environment_with: Callable[[str], Environment], extras: str, entrance: str
) -> None:
    """A gateway with the extra of a protocol answers by it, without anything else being installed."""
    code = f"import ioa_gateway.{entrance}.{entrance}_application as entrance; print(callable(entrance.application))"
    assert environment_with(extras).python(code) == "True"


def test_extra_examples_installs_all_imports_of_examples(environment_with: Callable[[str], Environment]) -> None:
    """With the extra, every module in examples/agents can be imported."""
    agents = ROOT / "examples" / "agents"
    code = "import json, importlib, sys\nfor name in NAMES: importlib.import_module(name)\nprint('imported')"
    names = sorted(file.stem for file in agents.glob("*.py") if not file.stem.startswith("_"))
    assert environment_with("examples").python(code.replace("NAMES", repr(names)), cwd=agents) == "imported"
