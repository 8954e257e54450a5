"""The chart's tests need helm and Kubernetes' schemas, of the group `chart`; without them nothing is collected."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("kubernetes_validate") and find_spec("yaml") else ["test_*.py"]
