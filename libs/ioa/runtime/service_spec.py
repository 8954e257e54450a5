"""Installed services of the control plane: entry points in the group `ioa.services`, each a `ServiceSpec`.

`ioa up` starts them, and `ioa doctor` reports services that do not answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from ioa.distribution import NAME
from ioa.errors import NotFoundError

GROUP = "ioa.services"


@dataclass(frozen=True)
class ServiceSpec:
    """A service.

    Attributes:
        package: The package that `python -m` runs. Its `__main__` has `SETTINGS`, the class of its settings, and `serve`.
    """

    package: str

    @property
    def name(self) -> str:
        """Name of the NATS service (NATS ADR-32), such as `ioa-router`."""
        return self.package.replace("_", "-")


@cache
def service_specs() -> tuple[ServiceSpec, ...]:
    """Return the installed services, by name.

    Raises:
        NotFoundError: No service is installed.
    """
    specs: list[ServiceSpec] = [point.load() for point in entry_points(group=GROUP)]
    if not specs:
        raise NotFoundError(
            "No service of the control plane is installed.", hint=f"Install {NAME} again; a clone: `pip install -e .`."
        )
    return tuple(sorted(specs, key=lambda spec: spec.package))
