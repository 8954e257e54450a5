"""Create the credentials of a system on Kubernetes: `python -m ioa.hosting.cluster_credentials PLAN.json [--unverified]`, in a pod.

The roster follows the plan: a name that the plan omits is removed. A seed is replaced only by a rotation, once for each
rotation id. Secrets that were given are only read.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores.kubernetes import open_kubernetes_secrets
from ioa.errors import InvalidInputError, IoaError
from ioa.foreign_text import shown
from ioa.hosting.credential_store import Secrets, load_roster, make_callout, make_seeds, write_roster
from ioa.hosting.roster import AccessRoster, Holder
from ioa.protocol.ids import TenantIdField
from ioa.protocol.model import Instruction

ROUTES, ROUTE_PASSWORD = "routes.conf", "route-password"

_ROTATION = "rotation"
_ROUTE_USER = "ioa"
_PASSWORD_BYTES = 24


class SeedsPlan(Instruction):
    """A Secret: the holder of each of its keys, and whether it was given and is only read."""

    given: bool = False
    seeds: Mapping[str, Holder] = Field(min_length=1)


class Rotation(Instruction):
    """Secrets whose seeds are replaced, once for each id. The keys before them connect until the rotation is ended."""

    id: str
    of: tuple[str, ...]
    ended: bool = False


class Plan(Instruction):
    """The Secrets by name, the Secret of nats-server, and the nodes that its servers connect to (host:port).

    `tenants` contains the limits of each tenant with a name; `limits` contains the limits of the tenant without a name.
    """

    rotation: Rotation | None = None
    secrets: Mapping[str, SeedsPlan]
    tenants: Mapping[TenantIdField, AccountLimits] = {}
    limits: AccountLimits = AccountLimits()
    authorization: str
    callout: str | None = None
    routes: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


def make_credentials(plan: Plan, store: Secrets) -> list[str]:
    """Create the missing seeds, write roster and authorization, and return a sentence for each Secret that changed.

    Raises:
        InvalidInputError: A Secret that was given is missing or contains none of the seeds.
        UnavailableError: Secrets cannot be read or written.
    """
    done: list[str] = []

    def note(name: str, changed: Sequence[str]) -> None:
        if changed:
            done.append(f"wrote {name}: {', '.join(sorted(changed))}")

    before, holders, rotation = load_roster(store, plan.authorization), list[Holder](), plan.rotation
    for name, wanted in plan.secrets.items():
        there, due, seeds = store.read(name) or {}, None, wanted.seeds
        if wanted.given:
            seeds = {key: one for key, one in seeds.items() if key in there}
            if not seeds:
                what = "holds none of" if there else "is not there; it should hold"
                raise InvalidInputError(f"The Secret {name} {what} {', '.join(wanted.seeds)}.")
        elif rotation is not None and name in rotation.of and there.get(_ROTATION) != rotation.id.encode():
            due = {_ROTATION: rotation.id.encode()}
        found, changed = make_seeds(store, name, seeds, due)
        holders += found
        note(name, changed)
    callout = None
    if plan.callout is not None:
        callout, changed = make_callout(store, plan.callout)
        note(plan.callout, changed)
    roster = AccessRoster(holders=tuple(holders), tenants=plan.tenants, limits=plan.limits, callout=callout)
    if rotation is not None and not rotation.ended:
        roster = _with_old_keys(roster, before)
    password = (store.read(plan.authorization) or {}).get(ROUTE_PASSWORD) or secrets.token_urlsafe(_PASSWORD_BYTES).encode("ascii")
    routes = {ROUTES: _routes(plan.routes, password.decode("ascii")).encode(), ROUTE_PASSWORD: password}
    note(plan.authorization, write_roster(store, plan.authorization, roster, routes))
    return done


def _with_old_keys(roster: AccessRoster, before: AccessRoster) -> AccessRoster:
    """Keep the keys that the same holders had before, while a rotation is under way."""
    old = {(one.tenant, one.name, one.role, one.pool): one for one in before.holders}
    kept = [found for one in roster.holders if (found := old.get((one.tenant, one.name, one.role, one.pool)))]
    return roster.model_copy(update={"holders": tuple(kept)}).add(roster.holders)


def _routes(nodes: tuple[str, ...], password: str) -> str:
    """Render the part of nats-server's cluster block with the password of its nodes and their addresses."""
    routes = "".join(f'  "nats://{_ROUTE_USER}:{password}@{node}"\n' for node in nodes)
    return f'authorization {{ user: "{_ROUTE_USER}", password: "{password}" }}\nroutes [\n{routes}]\n'


def main(arguments: list[str]) -> int:
    """Create the credentials of a plan; return the exit code."""
    try:
        try:
            plan = Plan.model_validate_json(Path(arguments[0]).read_bytes())
        except (IndexError, OSError, ValidationError) as error:
            raise InvalidInputError(f"There is no usable plan: {error}.", hint="Give the path of a plan in JSON.") from None
        with open_kubernetes_secrets(plan.labels, verify="--unverified" not in arguments) as store:
            done = make_credentials(plan, store)
    except IoaError as error:
        sys.stderr.write(f"error: {shown(str(error))}\n")
        return 1
    sys.stdout.write("\n".join([*done, ""]) if done else "nothing to do: all credentials exist\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
