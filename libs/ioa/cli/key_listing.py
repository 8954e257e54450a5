"""`ioa credentials list`: who is let in, by the keys of a folder or by others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ioa.adapters.nats.authorization import agent_of, role_of, user_of
from ioa.cli.credentials import TENANTS, FolderSecrets, read_known
from ioa.cli.terminal import Terminal


@dataclass(frozen=True)
class Holder:
    """Somebody for whom there is a seed, or who is let in without.

    Attributes:
        name: As the other commands take it; empty if there is no seed, and he is neither an agent nor a user.
        role: As `ioa credentials create` names it; empty if he is not let in.
        tenant: Whose he is; empty for the tenant without a name.
        pool: Of an agent.
        old_keys: How many keys before this one are let in: until their grace is over and `ioa credentials expire` has run.
        public_key: As nats-server logs it.
        has_seed: Whether there is a seed of it in the folder.
    """

    name: str
    role: str
    tenant: str
    pool: str
    old_keys: int
    public_key: str
    has_seed: bool = True


def list_holders(folder: Path, terminal: Terminal) -> None:
    """Say who is let in, and of whom there is a seed that lets in no more.

    Raises:
        InvalidInputError: There are no credentials, or the folder is open to others.
    """
    found = sorted(_holders(folder), key=lambda one: (one.tenant, one.role, one.name))
    if terminal.as_json:
        terminal.document([asdict(one) for one in found])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    heads = ("name", "role", "pool", "tenant", "old keys", "public key")
    for head in heads:
        table.add_column(head)
    for one in found:
        old = str(one.old_keys) if one.old_keys else ""
        name = one.name if one.has_seed else f"{one.name} (no seed here)".lstrip()
        table.add_row(name, one.role or "not let in", one.pool, one.tenant, old, one.public_key)
    terminal.print(table)
    kept = FolderSecrets(folder)
    for stray in (*kept.strays("*"), *kept.strays(f"{TENANTS}/*/*")):
        terminal.note(f"{folder / stray.secret / stray.key} is nobody's here: no command goes by it, and it may be removed")


def _holders(folder: Path) -> Iterator[Holder]:
    kept = FolderSecrets(folder)
    known = read_known(kept, folder)
    seen = set[str]()
    for one in (*kept.seeds("*"), *kept.seeds(f"{TENANTS}/*/*")):
        *tenant, pool = one.secret.removeprefix(f"{TENANTS}/").split("/")
        may = known.get(one.public_key)
        old = known.keys() & {*one.keys(known)} - {one.public_key}
        seen |= old | {one.public_key}
        yield Holder(
            name=one.name,
            role="" if may is None else role_of(may),
            tenant="".join(tenant),
            pool=pool if one.is_of_pool else "",
            old_keys=len(old),
            public_key=one.public_key,
        )
    for key in known.keys() - seen:
        may = known[key]
        name = user_of(may.publish) or agent_of(may.publish) or ""
        yield Holder(name, role_of(may), may.tenant or "", "", 0, key, has_seed=False)
