"""Asking processes of this machine by plain HTTP."""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For httpx, whose default reads all certificates that the machine trusts, 25 ms of CPU for each client and more memory than it."""
