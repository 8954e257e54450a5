"""Make the credentials of a system on Kubernetes: `python -m ioa.hosting.cluster_credentials PLAN.json [--unverified]`, in a pod.

Rules that hold here: a seed that is there is never replaced, so that running this again changes nothing; the authorization is
rendered anew each time, so that it always says what this version of the code knows; Secrets that were given are only read.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from pydantic import ConfigDict, Field, ValidationError

from ioa.adapters.kubernetes_secrets import open_kubernetes_secrets
from ioa.adapters.nats.authorization import authorization
from ioa.adapters.nats.permissions import Permissions, Service, of_admin, of_agent, of_observer, of_service, of_user
from ioa.adapters.nkey_seeds import create_seed, public_key_of
from ioa.errors import InvalidInputError, IoaError
from ioa.foreign_text import shown
from ioa.protocol.ids import AgentIdField, PoolIdField, UserIdField
from ioa.protocol.model import Model

AUTHORIZATION, ROUTES, ROUTE_PASSWORD = "authorization.conf", "routes.conf", "route-password"

_ROUTE_USER = "ioa"
_PASSWORD_BYTES = 24


class _Part(Model):
    model_config = ConfigDict(extra="forbid")


class ServiceIdentity(_Part):
    """A service of the control plane."""

    service: Service

    def permissions(self) -> Permissions:
        """Return what it may do."""
        return of_service(self.service)


class AgentIdentity(_Part):
    """One agent of a pool."""

    agent: AgentIdField
    pool: PoolIdField

    def permissions(self) -> Permissions:
        """Return what it may do."""
        return of_agent(self.agent, self.pool)


class UserIdentity(_Part):
    """Somebody who is neither."""

    user: UserIdField
    role: Literal["user", "observer", "admin"]

    def permissions(self) -> Permissions:
        """Return what it may do."""
        match self.role:
            case "user":
                return of_user(self.user)
            case "observer":
                return of_observer()
            case "admin":
                return of_admin()


class SeedsPlan(_Part):
    """A Secret: who each of its keys stands for, and whether it was given and is only read."""

    given: bool = False
    seeds: Mapping[str, ServiceIdentity | AgentIdentity | UserIdentity] = Field(min_length=1)


class Plan(_Part):
    """All that there should be: Secrets by name, the one for nats-server, and the nodes its servers look for (host:port)."""

    secrets: Mapping[str, SeedsPlan]
    authorization: str
    routes: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class Secrets(Protocol):
    """Where Secrets are kept."""

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return what one holds, or None."""

    def create(self, name: str, data: Mapping[str, bytes], labels: Mapping[str, str]) -> None:
        """Make one."""

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Put keys into one."""


def make_credentials(plan: Plan, kept: Secrets) -> list[str]:
    """Make what is missing and say, in a sentence each, what was done.

    Raises:
        InvalidInputError: A Secret that was given is not there, or holds none of the seeds it should.
        UnavailableError: Secrets cannot be read or written.
    """
    done: list[str] = []
    users: dict[str, Permissions] = {}
    for name, wanted in plan.secrets.items():
        for key, seed in _seeds(name, wanted, plan.labels, kept, done).items():
            users[public_key_of(seed)] = wanted.seeds[key].permissions()
    there = kept.read(plan.authorization)
    password = (there or {}).get(ROUTE_PASSWORD) or secrets.token_urlsafe(_PASSWORD_BYTES).encode("ascii")
    data = {
        AUTHORIZATION: authorization(users).encode(),
        ROUTES: _routes(plan.routes, password.decode("ascii")).encode(),
        ROUTE_PASSWORD: password,
    }
    _put(plan.authorization, there, data, plan.labels, kept, done)
    return done


def _seeds(name: str, wanted: SeedsPlan, labels: Mapping[str, str], kept: Secrets, done: list[str]) -> dict[str, str]:
    """Return the seeds of one Secret by key: those that are there, and new ones for the rest unless the Secret was given."""
    there = kept.read(name)
    seeds = {key: there[key].decode("ascii").strip() for key in wanted.seeds if there is not None and key in there}
    if wanted.given:
        if not seeds:
            keys = ", ".join(wanted.seeds)
            raise InvalidInputError(f"The Secret {name} {'holds none of' if there else 'is not there; it should hold'} {keys}.")
        return seeds
    seeds |= {key: create_seed() for key in wanted.seeds if key not in seeds}
    _put(name, there, {key: seed.encode("ascii") for key, seed in seeds.items()}, labels, kept, done)
    return seeds


def _put(
    name: str,
    there: Mapping[str, bytes] | None,
    data: Mapping[str, bytes],
    labels: Mapping[str, str],
    kept: Secrets,
    done: list[str],
) -> None:
    """Write what is new, and nothing if nothing is."""
    if there is None:
        kept.create(name, data, labels)
        done.append(f"made {name} with {len(data)} keys")
        return
    new = {key: value for key, value in data.items() if there.get(key) != value}
    if new:
        kept.extend(name, new)
        done.append(f"changed {name}: {', '.join(sorted(new))}")


def _routes(nodes: tuple[str, ...], password: str) -> str:
    """Render what goes into nats-server's cluster block: by what its nodes know each other, and where they are."""
    routes = "".join(f'  "nats://{_ROUTE_USER}:{password}@{node}"\n' for node in nodes)
    return f'authorization {{ user: "{_ROUTE_USER}", password: "{password}" }}\nroutes [\n{routes}]\n'


def main(arguments: list[str]) -> int:
    """Make the credentials that the plan names; returns the exit code."""
    try:
        try:
            plan = Plan.model_validate_json(Path(arguments[0]).read_bytes())
        except (IndexError, OSError, ValidationError) as error:
            raise InvalidInputError(f"There is no usable plan: {error}.", hint="Give the path of a plan in JSON.") from None
        with open_kubernetes_secrets(verify="--unverified" not in arguments) as kept:
            done = make_credentials(plan, kept)
    except IoaError as error:
        sys.stderr.write(f"error: {shown(str(error))}\n")
        return 1
    sys.stdout.write("\n".join([*done, ""]) if done else "nothing to do: all credentials are there\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
