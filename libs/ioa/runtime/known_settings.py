"""Names of all settings: every process rejects a variable that no process reads.

Processes often share one environment, and a process may not have the code of another. `tools.settings_page` compares the list with
the settings in the code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from ioa.errors import InvalidInputError

PREFIX = "IOA_"
LOOPBACK = "127.0.0.1"

PROCESS = """
    IOA_NATS_URL IOA_NATS_CREDENTIALS IOA_NATS_SEED IOA_NATS_TOKEN IOA_NATS_CA IOA_NATS_CERTIFICATE
    IOA_LOG_LEVEL IOA_LOG_FORMAT IOA_LOG_CONTENT IOA_METRICS_PORT IOA_METRICS_ADDRESS
    IOA_DATA
"""
CONTROL_PLANE = """
    IOA_REPLICAS IOA_LEASE IOA_RENEW_EVERY IOA_FLOOR_TIMEOUT IOA_TASK_LEASE
    IOA_MODEL_PATIENCE IOA_PATIENCE IOA_MAX_DEPTH IOA_LEADERS IOA_KEEP IOA_KEEP_AGENTS IOA_AUDIT_KEEP
    IOA_RATE IOA_BURST
    IOA_QUOTA_GOALS
    IOA_QUOTA_GROUP_TASKS IOA_QUOTA_GROUP_LOG_BYTES
    IOA_AGENT_FILES_BYTES IOA_USER_FILES_BYTES IOA_STORE_BYTES
"""
DISCOVERY = "IOA_QDRANT_URL IOA_QDRANT_API_KEY IOA_VECTORS_FOLDER IOA_EMBEDDING_MODEL"
CALLOUT = "IOA_CALLOUT_ISSUER IOA_CALLOUT_JWKS IOA_CALLOUT_AUDIENCE IOA_CALLOUT_CLAIM IOA_CALLOUT_KEYS IOA_CALLOUT_ROSTER"
GATEWAY = "IOA_HTTP_PORT IOA_HTTP_ADDRESS IOA_HTTP_URLS IOA_HTTP_RUN IOA_SEATS IOA_WEBHOOKS_INSIDE"
AGENTS = """
    IOA_AGENT_DATA IOA_DRAIN IOA_TASKS_AT_ONCE IOA_GOALS_AT_ONCE IOA_REPLICA IOA_CARD IOA_SANDBOX
"""
MODELS = """
    IOA_LLM_CONFIG IOA_LLM_BASE_URL IOA_LLM_MODEL IOA_LLM_API_KEY IOA_LLM_CONTEXT IOA_LLM_MAX_ANSWER IOA_LLM_TIMEOUT
    IOA_LLM_PATIENCE IOA_LLM_PRICES IOA_LLM_EXTRA
"""

KNOWN = frozenset(f"{PROCESS} {CONTROL_PLANE} {DISCOVERY} {CALLOUT} {GATEWAY} {AGENTS} {MODELS}".split())

_SERVICE_HOST = "_SERVICE_HOST"


def variable(field: str) -> str:
    """Return the variable of a field."""
    return f"{PREFIX}{field.upper()}"


def refuse_unknown(environment: Mapping[str, str], own: Iterable[str] = ()) -> None:
    """Reject variables that begin with `IOA_` and that no process of the system reads.

    Variables that Kubernetes creates for services, such as `IOA_NATS_SERVICE_HOST` and `IOA_NATS_PORT_4222_TCP`, are ignored.

    Args:
        environment: The variables.
        own: Further known names, of a program that is no part of the system.

    Raises:
        InvalidInputError: A variable is unknown; the message contains the most similar setting.
    """
    known = KNOWN.union(own)
    services = [name.removesuffix(_SERVICE_HOST) for name in environment if name.endswith(_SERVICE_HOST)]
    made = tuple(f"{service}_{part}" for service in services for part in ("SERVICE_", "PORT_"))
    ports = {f"{service}_PORT" for service in services}
    unknown = sorted(
        name for name in environment if name.startswith(PREFIX) and name not in known | ports and not name.startswith(made)
    )
    if unknown:
        nearest = {name: difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)[0] for name in unknown}
        problems = ", ".join(f"{name} is no setting (the nearest is {other})" for name, other in nearest.items())
        raise InvalidInputError(f"{problems}; docs/settings.md lists all of them.")
