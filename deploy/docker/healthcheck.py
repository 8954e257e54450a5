"""Exit 0 if what runs in this container says that it is ready, at the port and path given, or else those of our services."""

from __future__ import annotations

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen

try:
    where = sys.argv[1] if sys.argv[1:] else f"{os.environ['IOA_METRICS_PORT']}/readyz"
    with urlopen(f"http://127.0.0.1:{where}", timeout=3) as answer:
        sys.exit(0 if answer.status == 200 else 1)
except (KeyError, OSError, URLError) as error:
    sys.exit(f"not ready: {error}")
