"""The part of a nats-server's configuration that says who may connect, as what, rendered from `ioa.adapters.nats.permissions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ioa.adapters.nats.permissions import CLIENTS, CONTROL_PLANE, Permissions, crossing, is_answered_often
from ioa.protocol.subjects import inbox_prefix_of


def authorization(users: Mapping[str, Permissions]) -> str:
    """Render the accounts of a server, in JSON, which nats-server reads and includes like its own notation.

    Args:
        users: What each may do, by public key.
    """
    requests, pushes = crossing()
    accounts: dict[str, dict[str, Any]] = {
        CONTROL_PLANE: {
            "jetstream": "enabled",
            "exports": [*(_exported(subject) for subject in requests), *({"stream": subject} for subject in pushes)],
        },
        CLIENTS: {
            "imports": [
                {kind: {"account": CONTROL_PLANE, "subject": subject}}
                for kind, found in (("service", requests), ("stream", pushes))
                for subject in found
            ],
        },
    }
    for name, account in accounts.items():
        account["users"] = [_user(key, may) for key, may in sorted(users.items()) if may.account == name]
    return json.dumps({"accounts": accounts}, indent=1) + "\n"


def _exported(subject: str) -> dict[str, str]:
    return {"service": subject} | ({"response_type": "stream"} if is_answered_often(subject) else {})


def _user(public_key: str, may: Permissions) -> dict[str, Any]:
    permissions: dict[str, Any] = {
        "publish": {"allow": list(may.publish)},
        "subscribe": {"allow": [*may.subscribe, f"{inbox_prefix_of(public_key)}.>"]},
    }
    if may.answering is not None:
        permissions["allow_responses"] = {"max": may.answering.times, "expires": f"{may.answering.seconds}s"}
    return {"nkey": public_key, "permissions": permissions}
