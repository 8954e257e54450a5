"""One release for all tests of this folder, which run in their order on whatever cluster KUBECONFIG names."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.telemetry.logs import configure_logs
from tests.k8s.goals import Goals
from tests.k8s.release import open_nats

_MISSING = [name for name in ("kubectl", "helm") if shutil.which(name) is None] + (
    [] if os.environ.get("KUBECONFIG") else ["KUBECONFIG"]
)
_SERIAL = iter(range(1, 1_000))


@pytest.fixture(autouse=True)
def _cluster() -> None:
    """Say what is missing, rather than fail on it."""
    if _MISSING:
        pytest.fail(f"The end-to-end test needs {', '.join(_MISSING)}.", pytrace=False)


@pytest.fixture(autouse=True)
def _few_words() -> None:
    """Leave out what a broken tunnel says four times a second."""
    configure_logs("warning", "console")


@pytest.fixture
async def goals(tmp_path: Path) -> AsyncIterator[Goals]:
    """Goals for the release, published and judged as its admin. Each test's have names of their own."""
    async with open_nats("admin") as client:
        yield Goals(client, tmp_path, f"e2e{next(_SERIAL)}-{os.getpid()}")
