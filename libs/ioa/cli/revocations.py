"""What is still to be told of somebody who was thrown out, noted in the folder of keys so that `revoke` can be given again.

Whoever is thrown out has neither a seed nor a place in the authorization any more, so that nothing else names him: the server, the
registry, gateways and group setup may have been out of reach when he was.
"""

from __future__ import annotations

from collections.abc import Collection

from pydantic import ConfigDict, TypeAdapter

from ioa.cli.credentials import AUTHORIZATION, FolderSecrets
from ioa.protocol.ids import AgentId, AgentIdField, TenantId, TenantIdField, UserId, UserIdField
from ioa.protocol.model import Model

FILE = "revoked.json"
"""Where it is noted, beside what the server includes."""


class Revocation(Model):
    """Who was thrown out, and who is to be told.

    Attributes:
        name: As it was given; None for a whole tenant.
        tenant: Whose it is.
        public_keys: The keys that are let in no more.
        seed: By which it is tried whether a server lets him in; of no use to anybody, since it is let in nowhere.
        server: Whether the server is to read who is let in.
        cards: The agents that the registry is to forget.
        http_keys: The users whose keys of HTTP are to end.
        goals: The users whose goals are to end.
    """

    model_config = ConfigDict(extra="forbid")

    name: str | None
    tenant: TenantIdField | None
    public_keys: tuple[str, ...] = ()
    seed: str | None = None
    server: bool = True
    cards: tuple[AgentIdField, ...] = ()
    http_keys: tuple[UserIdField, ...] = ()
    goals: tuple[UserIdField, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether all were told."""
        return not (self.server or self.cards or self.http_keys or self.goals)

    def after(
        self, *, server: bool, cards: Collection[AgentId], http_keys: Collection[UserId], goals: Collection[UserId]
    ) -> Revocation:
        """Return what is still to be told when this was."""
        return Revocation(
            name=self.name,
            tenant=self.tenant,
            public_keys=self.public_keys,
            seed=None if server else self.seed,
            server=self.server and not server,
            cards=tuple(one for one in self.cards if one not in cards),
            http_keys=tuple(one for one in self.http_keys if one not in http_keys),
            goals=tuple(one for one in self.goals if one not in goals),
        )


_NOTED = TypeAdapter(list[Revocation])


def noted_revocation(kept: FolderSecrets, tenant: TenantId | None, name: str | None) -> Revocation | None:
    """Return what is still to be told of somebody; None if it is nothing."""
    return next((one for one in _read(kept) if (one.tenant, one.name) == (tenant, name)), None)


def note_revocation(kept: FolderSecrets, revocation: Revocation) -> None:
    """Note what is to be told of somebody now, in the place of what was before; nothing where that is done."""
    before = _read(kept)
    who = (revocation.tenant, revocation.name)
    noted = [one for one in before if (one.tenant, one.name) != who] + ([] if revocation.is_done else [revocation])
    if noted:
        kept.extend(AUTHORIZATION, {FILE: _NOTED.dump_json(noted)})
    elif before:
        kept.remove(AUTHORIZATION, FILE)


def _read(kept: FolderSecrets) -> list[Revocation]:
    return _NOTED.validate_json((kept.read(AUTHORIZATION) or {}).get(FILE, b"[]"))
