"""Description of the service for `ioa up` and `ioa doctor`."""

from __future__ import annotations

from ioa.runtime.service_spec import ServiceSpec

SPEC = ServiceSpec("ioa_registry")
