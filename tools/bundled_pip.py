"""Print where the pip lies that comes with Python, a wheel, from which it runs without having been installed."""

from __future__ import annotations

import ensurepip
import sys
import sysconfig
from pathlib import Path

_FOLDERS = (sysconfig.get_config_var("WHEEL_PKG_DIR"), Path(ensurepip.__file__).parent / "_bundled")
"""Where distributions of Linux keep it, and where Python does."""

if __name__ == "__main__":
    wheels = [Path(folder) / f"pip-{ensurepip.version()}-py3-none-any.whl" for folder in _FOLDERS if folder]
    sys.stdout.write(str(next(wheel for wheel in wheels if wheel.exists())))
