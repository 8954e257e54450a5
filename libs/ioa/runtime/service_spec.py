"""How a service of the control plane announces itself, so that the library starts and misses services without naming any.

A package has an entry point in the group `ioa.services` (packaging.python.org, "Entry points specification") that names its
`ServiceSpec`. `ioa up` runs every one that is installed, and `ioa doctor` misses every one that does not answer.
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
        package: What `python -m` runs.
        is_preloaded: Whether processes of one machine share its modules: what it imports is what the others import as well.
    """

    package: str
    is_preloaded: bool

    @property
    def name(self) -> str:
        """What it is called among NATS services (NATS ADR-32), such as `ioa-router`."""
        return self.package.replace("_", "-")


@cache
def service_specs() -> tuple[ServiceSpec, ...]:
    """Return the services that are installed, by name. Reading them imports their packages, but nothing of what they run on.

    Raises:
        NotFoundError: None is, which an installation made before services announced themselves brings about.
    """
    specs: list[ServiceSpec] = [point.load() for point in entry_points(group=GROUP)]
    if not specs:
        raise NotFoundError(
            "No service of the control plane is installed.", hint=f"Install {NAME} again; a clone: `pip install -e .`."
        )
    return tuple(sorted(specs, key=lambda spec: spec.package))
