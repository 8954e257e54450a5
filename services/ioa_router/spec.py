"""What the library knows of this service."""

from __future__ import annotations

from ioa.runtime.service_spec import ServiceSpec

SPEC = ServiceSpec("ioa_router", is_preloaded=True)
