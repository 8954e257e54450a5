"""Settings: each is documented, each name that anything sets is one, and a misspelt one is refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ioa.adapters.nats.auth.roles import CALLOUT, REQUESTS_OF
from ioa.adapters.nats.streams.topology import STREAMS
from ioa.errors import InvalidInputError
from ioa.runtime.known_settings import KNOWN, variable
from ioa.runtime.process import run_process
from ioa.runtime.settings import ProcessSettings, settings_from
from tests.rig.load_worker import LoadSettings
from tools.settings_page import SECTIONS, main, settings_of

OF_NATS = {CALLOUT, *STREAMS, *(name.removeprefix("KV_").removeprefix("OBJ_") for name in STREAMS), *REQUESTS_OF}
"""Names of streams, buckets and accounts."""
LOAD = {variable(field) for field in LoadSettings.model_fields}
"""Settings of the load agents, which are no part of the system."""
ROOT = Path(__file__).parents[3]
_VARIABLE = re.compile(r"(?<![A-Z_])IOA_[A-Z]+(?:_[A-Z]+)*(?![A-Z_*{])")


def test_settings_page_describes_each_setting() -> None:
    """Its names are the known settings, each with a meaning."""
    main(["--check", str(ROOT / "docs" / "settings.md")])
    listed = [setting for section in SECTIONS for setting in settings_of(section)]
    assert (sorted(one.name for one in listed), [one.name for one in listed if not one.meaning]) == (sorted(KNOWN), [])


def test_every_variable_that_the_code_looks_up_is_a_setting() -> None:
    """Other names are streams or accounts of NATS."""
    found = {name for folder in ("libs", "services", "examples", "benchmarks") for name in _written_in(ROOT / folder)}
    assert found - KNOWN - OF_NATS - LOAD == set()


def _written_in(folder: Path) -> set[str]:
    return {
        node.value
        for file in folder.rglob("*.py")
        if "IOA_" in (source := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value)
    }


@pytest.mark.parametrize("name", ["deploy/compose.yaml", "deploy/docker/Dockerfile", "tests/k8s/values.yaml", "helm/ioa/templates"])
def test_variables_of_deployments_are_settings(name: str) -> None:
    """Compose file, image, chart and the values of its test on a cluster set no variable that processes refuse."""
    path = ROOT / name
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    ranged = {f"IOA_{end}" for end in re.findall(r'"([A-Z]+(?:_[A-Z]+)*)" "\w+"', text)} if path.is_dir() else set()
    found = set(_VARIABLE.findall(text)) | ranged
    assert (bool(found), found - KNOWN - OF_NATS - LOAD) == (True, set())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("IOA_NATS_ULR", "IOA_NATS_URL"),
        ("IOA_METRIC_PORT", "IOA_METRICS_PORT"),
        ("IOA_LLM_MODLE", "IOA_LLM_MODEL"),
        ("IOA_LOGLEVEL", "IOA_LOG_LEVEL"),
        ("IOA_KEEP_AGENT", "IOA_KEEP_AGENTS"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_name_that_was_meant(written: str, meant: str) -> None:
    """The error contains the nearest name."""
    with pytest.raises(
        InvalidInputError, match=rf"^{written} is no setting \(the nearest is {meant}\); docs/settings\.md lists all"
    ):
        settings_from(ProcessSettings, {written: "1"})


def test_a_process_with_a_misspelt_setting_ends_with_code_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the error, and does not run."""

    async def never(_settings: ProcessSettings, _stop: object) -> None:
        raise AssertionError("It ran.")

    with pytest.raises(SystemExit) as ended:
        run_process(ProcessSettings, never, {"IOA_NATS_ULR": "nats://there:4222"})
    assert (ended.value.code, capsys.readouterr().err) == (
        2,
        "error: IOA_NATS_ULR is no setting (the nearest is IOA_NATS_URL); docs/settings.md lists all of them.\n",
    )


@pytest.mark.parametrize(
    "environment",
    [
        dict.fromkeys(KNOWN - {f"IOA_{field.upper()}" for field in ProcessSettings.model_fields}, "any"),
        {"IOA_NATS_SERVICE_HOST": "10.0.0.1", "IOA_NATS_SERVICE_PORT_CLIENT": "4222", "IOA_NATS_PORT": "tcp://10.0.0.1:4222"}
        | {"IOA_NATS_PORT_4222_TCP_ADDR": "10.0.0.1"},
        {"IOAX": "no prefix", "NATS_URL": "somebody else's"},
    ],
    ids=["other processes'", "Kubernetes'", "somebody else's"],
)
def test_foreign_variables_are_ignored(environment: Mapping[str, str]) -> None:
    """Settings of other processes, variables of Kubernetes, and other prefixes."""
    assert settings_from(ProcessSettings, environment) == ProcessSettings()


def test_a_port_without_its_service_is_refused() -> None:
    """What only looks like a variable of Kubernetes, without the service's address, is misspelt."""
    with pytest.raises(InvalidInputError, match="IOA_NATS_PORT is no setting"):
        settings_from(ProcessSettings, {"IOA_NATS_PORT": "4222"})
