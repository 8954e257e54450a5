"""Making, listing and revoking the keys of HTTP."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from ioa.adapters.nats.auth.identity import ask_user
from ioa.adapters.nats.auth.roles import OURS
from ioa.adapters.nats.stores.api_keys import NatsApiKeys
from ioa.adapters.nats.system_client import ADMIN_HINT
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.cli.command import command
from ioa.cli.options import AsJson, Url
from ioa.cli.pruning import parse_age
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal
from ioa.errors import ForbiddenError, InvalidInputError, NotFoundError
from ioa.foreign_text import shown_in_line
from ioa.hosting.place import PATIENCE
from ioa.protocol.api_keys import ApiKey, KeyId, LoginToken, Scope, digest_of_secret, is_scope, written_key
from ioa.protocol.codec import validate
from ioa.protocol.ids import ADMIN, LOCAL, UserId, parse_agent_id
from ioa.protocol.labels import read_labels, refuse_reserved

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of HTTP clients, and their scopes.")

_ID_BYTES, _SECRET_BYTES = 6, 32
_OWN = KeyId("ioa-up")
"""The key behind the links that `ioa up --web` prints. Nobody knows its secret; replaced each time, it keeps its sessions."""
_LINK = timedelta(hours=1)


async def create_key(
    url: str | None,
    name: str,
    scopes: Sequence[str],
    user: str | None,
    lasting: timedelta | None,
    labels: Sequence[str],
    terminal: Terminal,
) -> None:
    """Make a key and print it.

    Raises:
        InvalidInputError: A scope or a label is none, or it is not said which user's the key is to be.
    """
    wanted = dict.fromkeys(scope.strip() for scope in scopes)
    if unknown := [scope for scope in wanted if not is_scope(scope)]:
        raise InvalidInputError(f"There is no scope {', '.join(unknown)}.", hint=f"There are {', '.join(Scope)}, and seats:NAME.")
    borne = read_labels(labels)
    refuse_reserved(borne)
    async with _open_keys(url) as (store, me):
        owner = user or me
        if owner == ADMIN:
            raise InvalidInputError("A key is a user's, and you are an admin.", hint="Say whose it is with --user.")
        if me == ADMIN and owner.casefold() in OURS:  # where everybody is let in, everybody is `local`
            why = f"{owner} is what the system calls those of its own: a key of it would let its holder act for others."
            raise InvalidInputError(why, hint="Say whose it is with --user, by the name of a user.")
        now = datetime.now(UTC)
        key_id, secret = KeyId(secrets.token_hex(_ID_BYTES)), secrets.token_urlsafe(_SECRET_BYTES)
        fields = {
            "key_id": key_id,
            "name": name,
            "user": owner,
            "scopes": [*wanted],
            "digest": digest_of_secret(secret),
            "created_at": now,
            "expires_at": None if lasting is None else now + lasting,
            "labels": borne,
        }
        key = validate(ApiKey, fields)
        await store.put(key)
    if terminal.as_json:
        terminal.document({**key_document(key), "key": written_key(key_id, secret)})
    else:
        terminal.result.print(written_key(key_id, secret), soft_wrap=True)
        terminal.note("It is shown this once. Send it as `Authorization: Bearer …`.")


async def login_link(nats: NatsSettings, page: str) -> str:
    """Return a link to a page that lets one browser in, once, within an hour, for everything.

    Args:
        nats: The system, as its admin reaches it.
        page: Where the page is.
    """
    now, token = datetime.now(UTC), secrets.token_urlsafe(_SECRET_BYTES)
    async with open_connection(nats, patience=PATIENCE) as client:
        store = NatsApiKeys(client)
        digest = digest_of_secret(secrets.token_urlsafe(_SECRET_BYTES))
        await store.put(ApiKey(key_id=_OWN, name="ioa up", user=LOCAL, scopes=(*Scope,), digest=digest, created_at=now))
        await store.put_token(LoginToken(digest=digest_of_secret(token), key_id=_OWN, expires_at=now + _LINK))
    return f"{page}?token={token}"


@command(keys, "list")
async def list_keys(url: Url = None, as_json: AsJson = False) -> None:
    """List the keys with user, scopes and end."""
    terminal = Terminal(as_json=as_json)
    async with _open_keys(url) as (store, _):
        found = sorted(await store.keys(), key=lambda key: key.created_at)
    if terminal.as_json:
        terminal.document([key_document(key) for key in found])
    elif not found:
        terminal.print("No key yet. Make one: ioa keys create --name NAME")
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for head in ("key", "name", "user", "for", "until"):
            table.add_column(head)
        for key in found:
            until = "" if key.expires_at is None else f"{key.expires_at:%Y-%m-%d %H:%M} UTC"
            table.add_row(key.key_id, shown_in_line(key.name), key.user, " ".join(key.scopes), until)
        terminal.print(table)


async def revoke_key(url: str | None, key_id: str, terminal: Terminal) -> None:
    """Forget a key.

    Raises:
        NotFoundError: There is no such key.
    """
    async with _open_keys(url) as (store, _):
        await store.remove(KeyId(parse_agent_id(key_id)))
    if terminal.as_json:
        terminal.document({"revoked": key_id})
    else:
        terminal.print(f"{key_id} lets nobody in any more.")


async def end_sessions(url: str | None, terminal: Terminal) -> None:
    """Revoke the cookies of all browsers."""
    async with _open_keys(url) as (store, _):
        await store.end_sessions()
    if terminal.as_json:
        terminal.document({"ended": "sessions"})
    else:
        terminal.print("All sessions of browsers end within 5 s. Keys stay.")


async def revoke_user_keys(url: str | None, user: UserId, terminal: Terminal) -> None:
    """Revoke all keys of a user."""
    async with _open_keys(url) as (store, _):
        found = [key.key_id for key in await store.keys() if key.user == user]
        for key_id in found:
            with suppress(NotFoundError):  # revoked by another command in the meantime
                await store.remove(key_id)
    if terminal.as_json:
        terminal.document({"revoked": found})
    else:
        terminal.print(f"{len(found)} keys of {user} are revoked.")


def key_document(key: ApiKey) -> Mapping[str, Any]:
    """Describe a key for programs, without what is kept of its secret."""
    return key.model_dump(mode="json", exclude={"digest"})


@asynccontextmanager
async def _open_keys(url: str | None) -> AsyncIterator[tuple[NatsApiKeys, UserId]]:
    """Yield the keys and who asks for them, an admin, or `LOCAL` where nobody is asked who he is.

    Raises:
        ForbiddenError: It is somebody else, of whom nobody would hear.
    """
    nats, _ = await reach(url)
    async with open_connection(nats, patience=PATIENCE) as client:
        if (me := await ask_user(client)) not in (ADMIN, LOCAL):
            raise ForbiddenError(f"This credential is {me}'s, and keys of HTTP are an admin's affair.", hint=ADMIN_HINT)
        yield NatsApiKeys(client), me


@command(keys, "create")
async def create(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the key is called.", show_default=False)],
    scope: Annotated[
        str, typer.Option("--scope", metavar="SCOPES", help="Its scopes, separated by commas; seats:NAME answers as a person.")
    ] = "goals:read,goals:write,agents:read",
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="Whose goals are launched by it. Default: your own.", show_default=False),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="AGE", help="When it ends: 90d, 12h. Default: never.", show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=VALUE",
            help="Label of the goals that it launches; it shows no other goals. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: only a digest of it is kept.

    On a system with keys this needs an admin, with --user.
    """
    lasting = None if expires is None else parse_age(expires)
    await create_key(url, name, scope.split(","), user, lasting, label or (), Terminal(as_json=as_json))


@command(keys, "revoke")
async def revoke(
    key_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Its id, as `ioa keys list` shows it.", show_default=False)
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="All keys of this user.", show_default=False)] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="The sessions of all browsers. People sign in again; keys stay.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key, all keys of a user, or the sessions of all browsers. Gateways end their streams within 5 s."""
    if [key_id is not None, user is not None, sessions].count(True) != 1:
        raise typer.BadParameter("Give the ID of a key, --user or --sessions.")
    terminal = Terminal(as_json=as_json)
    if sessions:
        await end_sessions(url, terminal)
    elif user is not None:
        await revoke_user_keys(url, UserId(user), terminal)
    else:
        await revoke_key(url, key_id or "", terminal)
