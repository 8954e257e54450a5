"""Which services there are."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec

import pytest

from ioa.errors import NotFoundError
from ioa.runtime import service_spec
from ioa.runtime.service_spec import GROUP, service_specs


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    """Leave nothing cached of what a test has changed."""
    service_specs.cache_clear()
    yield
    service_specs.cache_clear()


def test_every_service_of_the_project_announces_itself() -> None:
    """`ioa up` starts whatever is announced, and each can be run by `python -m`."""
    assert [spec.name for spec in service_specs()] == ["ioa-discovery", "ioa-groups", "ioa-registry", "ioa-router"]
    for spec in service_specs():
        assert find_spec(f"{spec.package}.__main__") is not None


def test_an_installation_without_services_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts a system of no services, and takes it for ready."""

    def nothing(*, group: str) -> metadata.EntryPoints:
        assert group == GROUP
        return metadata.EntryPoints()

    monkeypatch.setattr(service_spec, "entry_points", nothing)
    with pytest.raises(NotFoundError, match="No service"):
        service_specs()
