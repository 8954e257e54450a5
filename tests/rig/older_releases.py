"""The code of older releases, which the tests of upgrades run beside this one."""

from __future__ import annotations

import tarfile
from pathlib import Path

OLDER_RELEASES = Path(__file__).parents[1] / "data" / "takeover"


def unpack_release(version: str, folder: Path) -> Path:
    """Unpack an older release's code into a folder, and return where it lies."""
    code = folder / "code"
    with tarfile.open(OLDER_RELEASES / f"ioa-{version}.tar.xz") as archive:
        # Python before 3.11.4 has no filters; where it has them, it asks for one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(code)
    return code
