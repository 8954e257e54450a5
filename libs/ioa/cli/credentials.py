"""`ioa credentials`: seeds and a nats-server's authorization in a folder, for systems outside Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ioa.adapters.nats.authorization import authorization, read_authorization
from ioa.adapters.nats.permissions import Service
from ioa.adapters.nkey_seeds import public_key_of
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.cluster_credentials import AUTHORIZATION as CONFIGURATION
from ioa.hosting.cluster_credentials import AgentIdentity, Plan, SeedsPlan, ServiceIdentity, make_credentials
from ioa.protocol.ids import AgentId, PoolId, check_token

AUTHORIZATION = "nats"
_SECRET, _PRIVATE_FOLDER = 0o600, 0o700
_MAX_REPLICAS = 1_000


class FolderSecrets:
    """Secrets as folders, each of their keys a file that only its owner may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return what a Secret holds, or None if there is none of this name."""
        folder = self._folder / name
        return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else None

    def names(self) -> Mapping[str, str]:
        """Return who has a folder with a seed of his own, by public key."""
        seeds = {file.parent.name: file.read_text(encoding="ascii").strip() for file in self._folder.glob("*/seed")}
        return {public_key_of(seed): name for name, seed in seeds.items()}

    def create(self, name: str, data: Mapping[str, bytes], labels: Mapping[str, str]) -> None:
        """Make a Secret that is not there yet; folders have no labels."""
        self.extend(name, data)

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Put keys into a Secret; its other keys stay. Each appears whole or not at all."""
        folder = self._folder / name
        try:
            folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            for key, value in data.items():
                draft = folder / f".{key}"
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _SECRET)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(value)
                draft.replace(folder / key)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be written: {error.strerror}.") from None


def plan_of(pools: Sequence[str], users: Sequence[str], observers: Sequence[str], admins: Sequence[str]) -> Plan:
    """Say who there is: the services, the agents of each pool, and the others by their roles.

    Raises:
        InvalidInputError: A name is no id, is given twice, or a pool has no number of replicas where there should be one.
    """
    found: list[tuple[str, SeedsPlan]] = [
        (service.value, SeedsPlan(seeds={"seed": ServiceIdentity(service=service)})) for service in Service
    ]
    found += [_pool(written) for written in pools]
    for role, names in (("user", users), ("observer", observers), ("admin", admins)):
        found += [(_name(name), SeedsPlan.model_validate({"seeds": {"seed": {"user": name, "role": role}}})) for name in names]
    names = [AUTHORIZATION, *(name for name, _ in found)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"There are two of the name {name!r}.", hint="Services, pools and users bear different names.")
    return Plan(secrets=dict(found), authorization=AUTHORIZATION)


def create_credentials(folder: Path, plan: Plan, terminal: Terminal) -> None:
    """Make the seeds that are missing, write the authorization anew, and say where everything lies."""
    done = make_credentials(plan, FolderSecrets(folder))
    files = {name: {key: str(folder / name / key) for key in wanted.seeds} for name, wanted in plan.secrets.items()}
    included = str(folder / AUTHORIZATION / CONFIGURATION)
    if terminal.as_json:
        terminal.document({"seeds": files, "authorization": included, "done": done})
        return
    for sentence in done or ["nothing to do: all credentials are there"]:
        terminal.note(sentence)
    terminal.result.print(included, soft_wrap=True)


def upgrade_credentials(folder: Path, terminal: Terminal) -> None:
    """Write the authorization anew, for those whom it lets in already, as this version has it."""
    kept = FolderSecrets(folder)
    there = (kept.read(AUTHORIZATION) or {}).get(CONFIGURATION)
    if there is None:
        raise InvalidInputError(
            f"There is no {folder / AUTHORIZATION / CONFIGURATION}.", hint="Make credentials with `ioa credentials create`."
        )
    known = read_authorization(there.decode("utf-8", "replace"), kept.names())
    rendered = authorization(known).encode()
    if rendered != there:
        kept.extend(AUTHORIZATION, {CONFIGURATION: rendered})
    if terminal.as_json:
        terminal.document(
            {"authorization": str(folder / AUTHORIZATION / CONFIGURATION), "changed": rendered != there, "keys": len(known)}
        )
        return
    changed = "is written anew" if rendered != there else "is that of this version already"
    terminal.note(f"the authorization of {len(known)} keys {changed}")
    terminal.result.print(str(folder / AUTHORIZATION / CONFIGURATION), soft_wrap=True)


def _pool(written: str) -> tuple[str, SeedsPlan]:
    pool, _, count = written.partition(":")
    _name(pool)
    if not count:
        return pool, SeedsPlan(seeds={pool: AgentIdentity(agent=AgentId(pool), pool=PoolId(pool))})
    if not (count.isdecimal() and 1 <= int(count) <= _MAX_REPLICAS):
        raise InvalidInputError(f"{written!r}: {count!r} is no number of replicas from 1 to {_MAX_REPLICAS}.")
    agents = [AgentId(f"{pool}-{number}") for number in range(int(count))]
    return pool, SeedsPlan(seeds={agent: AgentIdentity(agent=agent, pool=PoolId(pool)) for agent in agents})


def _name(written: str) -> str:
    try:
        return check_token(written)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
