"""The manifests of the chart for each set of values in `helm/ioa/ci`, as recorded.

`python -m tests.chart.golden` writes the golden file: for each set of values its objects, one a line.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

from tests.chart.rendering import CI, OLDEST, Manifest, render

_DRAWN = re.compile(r'"((?:checksum/)?(?:ca|tls)\.(?:crt|key)|api-key)": "[^"]*"')
"""The certificates and keys that helm makes for each rendering, and their checksums."""
GOLDEN = Path(__file__).parents[1] / "data" / "chart.jsonl.xz"


def manifests() -> list[str]:
    """Render the default and each set of values, some for an old Kubernetes too, and return the objects, one a line."""
    old = [path for path in CI if path.stem in ("hpa", "gateway")]
    rendered = [
        *((f"{values.stem} on {OLDEST}", render(values, kubernetes=OLDEST)) for values in old),
        *(("default" if values is None else values.stem, render(values)) for values in (None, *CI)),
    ]
    return [f"{name} {one['kind']}/{one['metadata']['name']} {_shown(one)}" for name, each in rendered for one in each.manifests]


def _shown(one: Manifest) -> str:
    return _DRAWN.sub(r'"\1": "drawn"', json.dumps(one, sort_keys=True))


def recorded() -> list[str]:
    """Read the golden file."""
    return lzma.decompress(GOLDEN.read_bytes()).decode().splitlines()


if __name__ == "__main__":
    GOLDEN.write_bytes(lzma.compress("\n".join(sorted(manifests())).encode()))
