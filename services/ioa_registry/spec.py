"""Description of the registry service."""

from __future__ import annotations

from ioa.runtime.service_spec import ServiceSpec

SPEC = ServiceSpec("ioa_registry", is_preloaded=True)
