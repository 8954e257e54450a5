"""What the library knows of this service."""

from __future__ import annotations

from ioa.runtime.service_spec import ServiceSpec

# Its own libraries are large, and its alone.
SPEC = ServiceSpec("ioa_discovery", is_preloaded=False)
