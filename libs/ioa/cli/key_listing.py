"""`ioa credentials list`: who is let in, by the keys of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ioa.adapters.nats.authorization import role_of
from ioa.cli.credentials import TENANTS, FolderSecrets, read_known
from ioa.cli.terminal import Terminal
from ioa.hosting.cluster_credentials import still_let_in


@dataclass(frozen=True)
class Holder:
    """Somebody for whom there is a seed.

    Attributes:
        name: As the other commands take it.
        role: As `ioa credentials create` names it; empty if he is not let in.
        tenant: Whose he is; empty for the tenant without a name.
        pool: Of an agent.
        old_keys: How many keys before this one are let in, since their grace is not over.
        public_key: As nats-server logs it.
    """

    name: str
    role: str
    tenant: str
    pool: str
    old_keys: int
    public_key: str


def list_holders(folder: Path, now: datetime, terminal: Terminal) -> None:
    """Say who is let in, and of whom there is a seed that lets in no more.

    Raises:
        InvalidInputError: There are no credentials, or the folder is open to others.
    """
    found = sorted(_holders(folder, now), key=lambda one: (one.tenant, one.role, one.name))
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
        table.add_row(one.name, one.role or "not let in", one.pool, one.tenant, old, one.public_key)
    terminal.print(table)


def _holders(folder: Path, now: datetime) -> Iterator[Holder]:
    kept = FolderSecrets(folder)
    known = read_known(kept, folder)
    for one in (*kept.seeds("*"), *kept.seeds(f"{TENANTS}/*/*")):
        *tenant, pool = one.secret.removeprefix(f"{TENANTS}/").split("/")
        may = known.get(one.public_key)
        old = [key for key in still_let_in(kept.read(one.secret) or {}, one.key, now) if key.public_key in known]
        yield Holder(
            name=one.name,
            role="" if may is None else role_of(may),
            tenant="".join(tenant),
            pool=pool if one.is_of_pool else "",
            old_keys=len(old),
            public_key=one.public_key,
        )
