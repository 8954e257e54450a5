"""The accounts of a nats-server that IoA runs in; `permissions` says what each may do."""

from __future__ import annotations

CONTROL_PLANE, AGENTS, USERS = "IOA", "IOA_AGENTS", "IOA_USERS"
"""The three accounts, as they are called for the tenant without a name."""
CALLOUT = "IOA_CALLOUT"
"""The account in which an auth callout is asked, which nobody else enters: what is asked holds tokens."""
