"""`ioa keys`: creates, lists and revokes the keys of HTTP clients."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from ioa.adapters.nats.auth.roles import OURS
from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.system_client import ADMIN_HINT
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.cli.command import command, parse_age
from ioa.cli.output.console import create_table
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.errors import ForbiddenError, InvalidInputError, NotFoundError
from ioa.foreign_text import shown_in_line
from ioa.hosting.place import PATIENCE
from ioa.protocol.codec import validate
from ioa.protocol.goals import read_labels, refuse_reserved
from ioa.protocol.ids import ADMIN, LOCAL, UserId, parse_agent_id
from ioa.protocol.operation.api_keys import ApiKey, KeyId, LoginToken, Scope, digest_of_secret, is_scope, written_key

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of HTTP clients, and their scopes.")

_ID_BYTES, _SECRET_BYTES = 6, 32
_OWN = KeyId("ioa-up")
"""The key of the links that `ioa up --web` prints. Its secret is discarded; replacing it keeps its sessions."""
_LINK = timedelta(hours=1)


@command(keys, "create")
async def create(
    system: Client,
    terminal: Terminal,
    *,
    name: str,
    scope: str = "goals:read,goals:write,agents:read",
    user: str | None = None,
    expires: str | None = None,
    label: Sequence[str] = (),
) -> None:
    """Make a key and print it, once: only a digest of it is kept.

    On a system with keys this needs an admin, with --user.

    Args:
        name (NAME): What the key is called.
        scope (SCOPES): Its scopes, separated by commas; seats:NAME answers as a person.
        user (NAME): Whose goals are launched by it. Default: your own.
        expires (AGE): When it ends: 90d, 12h. Default: never.
        label (NAME=VALUE): Label of the goals that it launches; it shows no other goals. Can be repeated.
    """
    scopes = [*dict.fromkeys(map(str.strip, scope.split(",")))]
    if unknown := [one for one in scopes if not is_scope(one)]:
        raise InvalidInputError(f"There is no scope {', '.join(unknown)}.", hint=f"There are {', '.join(Scope)}, and seats:NAME.")
    refuse_reserved(labels := read_labels(label))
    now, secret = datetime.now(UTC), secrets.token_urlsafe(_SECRET_BYTES)
    ends = None if expires is None else now + parse_age(expires)
    store, me = await _keys_of(system)
    owner = user or me
    if owner == ADMIN:
        raise InvalidInputError("A key belongs to a user, and you are an admin.", hint="Name the user with --user.")
    if me == ADMIN and owner.casefold() in OURS:  # without credentials, each caller is `local`
        why = f"{owner} is a name of the system's own: its key would let the holder act for others."
        raise InvalidInputError(why, hint="Name a user with --user.")
    fields = {"name": name, "user": owner, "scopes": scopes, "labels": labels, "created_at": now, "expires_at": ends}
    fields |= {"key_id": secrets.token_hex(_ID_BYTES), "digest": digest_of_secret(secret)}
    await store.put(key := validate(ApiKey, fields))
    written = written_key(key.key_id, secret)
    if terminal.as_json:
        terminal.document({**key_document(key), "key": written})
    terminal.result.print(written, soft_wrap=True)
    terminal.note("It is shown this once. Send it as `Authorization: Bearer …`.")


@command(keys, "list")
async def list_keys(system: Client, terminal: Terminal) -> None:
    """List the keys with user, scopes and expiry, the oldest first."""
    store, _ = await _keys_of(system)
    found = sorted(await store.keys(), key=lambda key: key.created_at)

    def cells(one: ApiKey) -> Sequence[str]:
        end = "" if one.expires_at is None else f"{one.expires_at:%Y-%m-%d %H:%M} UTC"
        return one.key_id, shown_in_line(one.name), one.user, " ".join(one.scopes), end

    table = create_table(("key", "name", "user", "for", "until"), map(cells, found), folded=("for",))
    terminal.show([*map(key_document, found)], table if found else "No key yet. Make one: ioa keys create --name NAME")


@command(keys, "revoke")
async def revoke(
    system: Client, terminal: Terminal, key_id: str | None = None, *, user: str | None = None, sessions: bool = False
) -> None:
    """Revoke a key, all keys of a user, or the sessions of all browsers. Gateways end their streams within 5 s.

    Args:
        key_id (ID): Its id, as `ioa keys list` shows it.
        user (NAME): All keys of this user.
        sessions: The sessions of all browsers. People sign in again; keys stay.
    """
    if [key_id is not None, user is not None, sessions].count(True) != 1:
        raise typer.BadParameter("Give the ID of a key, --user or --sessions.")
    store, _ = await _keys_of(system)
    if sessions:
        await store.end_sessions()
        terminal.show({"ended": "sessions"}, "All sessions of browsers end within 5 s. Keys stay.")
    elif key_id is not None:
        await store.remove(KeyId(parse_agent_id(key_id)))
        terminal.show({"revoked": key_id}, f"{key_id} is revoked.")
    else:
        found = [key.key_id for key in await store.keys() if key.user == user]
        for one in found:
            with suppress(NotFoundError):  # revoked by another command in the meantime
                await store.remove(one)
        terminal.show({"revoked": found}, f"{len(found)} keys of {user} are revoked.")


async def login_link(nats: NatsSettings, page: str) -> str:
    """Return a link to the page that lets one browser sign in, once, within an hour, with all scopes.

    Args:
        nats: The connection of an admin.
        page: URL of the page.
    """
    now, token, discarded = datetime.now(UTC), *(secrets.token_urlsafe(_SECRET_BYTES) for _ in range(2))
    key = ApiKey(key_id=_OWN, name="ioa up", user=LOCAL, scopes=(*Scope,), digest=digest_of_secret(discarded), created_at=now)
    async with open_connection(nats, patience=PATIENCE) as client:
        store = NatsApiKeys(client)
        await store.put(key)
        await store.put_token(LoginToken(digest=digest_of_secret(token), key_id=_OWN, expires_at=now + _LINK))
    return f"{page}?token={token}"


def key_document(key: ApiKey) -> Mapping[str, Any]:
    """Describe a key as JSON, without the digest of its secret."""
    return key.model_dump(mode="json", exclude={"digest"})


async def _keys_of(system: Client) -> tuple[NatsApiKeys, UserId]:
    """Return the keys and the caller: an admin, or `LOCAL` on a system without credentials.

    Raises:
        ForbiddenError: The caller is another user.
    """
    if (me := await system.user()) not in (ADMIN, LOCAL):
        raise ForbiddenError(f"This credential is {me}'s, and only an admin manages HTTP keys.", hint=ADMIN_HINT)
    return NatsApiKeys(system.connection), me
