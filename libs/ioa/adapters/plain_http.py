"""TLS context for requests to processes of this machine, which use plain HTTP."""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""An empty TLS context for httpx. Its default reads all trusted certificates, which takes 25 ms of CPU for each client."""
