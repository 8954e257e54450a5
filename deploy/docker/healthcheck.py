"""Exit 0 if the process in this container says that it is ready, on the port that IOA_METRICS_PORT gives it."""

from __future__ import annotations

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen

try:
    with urlopen(f"http://127.0.0.1:{os.environ['IOA_METRICS_PORT']}/readyz", timeout=3) as answer:
        sys.exit(0 if answer.status == 200 else 1)
except (KeyError, OSError, URLError) as error:
    sys.exit(f"not ready: {error}")
