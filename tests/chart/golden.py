"""The manifests of the chart for each set of values in `helm/ioa/ci`, as recorded.

`python -m tests.chart.golden` writes the golden file: for each set of values its objects, one a line.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

from tests.chart.rendering import CHART, MINORS, OLDEST, SETS_OF_VALUES, Manifest, render

_DRAWN = re.compile(r'"((?:checksum/)?(?:ca|tls)\.(?:crt|key))": "[^"]*"')
"""The certificates and keys that helm makes for each rendering, and their checksums."""
GOLDEN = Path(__file__).parents[1] / "data" / "chart.jsonl.xz"


def manifests() -> list[str]:
    """Render the default and each set of values, some for an old Kubernetes too, and return the objects, one a line."""
    cases = [(path, MINORS[-1]) for path in SETS_OF_VALUES] + [(CHART / "ci" / "gateway.yaml", OLDEST)]
    return [
        f"{values.stem} on {version} {one['kind']}/{one['metadata']['name']} {_shown(one)}"
        for values, version in cases
        for one in render(values, kubernetes=version).manifests
    ]


def _shown(one: Manifest) -> str:
    return _DRAWN.sub(r'"\1": "drawn"', json.dumps(one, sort_keys=True))


def recorded() -> list[str]:
    """Read the golden file."""
    return lzma.decompress(GOLDEN.read_bytes()).decode().splitlines()


if __name__ == "__main__":
    GOLDEN.write_bytes(lzma.compress("\n".join(sorted(manifests())).encode()))
