"""The authorisation matrix: which role may publish and subscribe to which subject, measured on a real nats-server.

`python -m tests.integration.security.authorization_matrix` writes the golden table. The matrix has each documented subject, with
the names of the caller itself, of another replica of its pool, of another pool and user, and with wildcards in place of names;
and the requests, keys and objects of every stream.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ioa.adapters.nats.streams.topology import STREAMS
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key
from tests.integration.security.secured import Secured, open_secured, open_wire
from tools.subjects_page import documented

GOLDEN = Path(__file__).parents[2] / "data" / "authorization" / "subjects.txt"
POOLS, USERS, GATEWAYS = ("desk:2", "shop"), ("user", "eve"), ("gateway",)
OUTSIDE = {"agent": ("desk", "desk-0"), "user": ("user", "seed"), "observer": ("observer", "seed"), "auditor": ("auditor", "seed")}
"""Roles whose keys strangers to the operator may hold, with the secret and the key in it."""
SERVICES = {name: (name, "seed") for name in ("gateway", "discovery", "authcallout")} | {"services": ("groups", "seed")}
"""The roles of the operator. `services` is the one that registry, group setup and router share."""
ROLES = {**OUTSIDE, **SERVICES}
"""Every role but the admin, which may use each subject of its account."""
_OWN = {"agent": {"desk", "desk-0"}, "user": {"user"}, "observer": {"observer"}, "auditor": {"auditor"}}
_CALLER_NAMES = frozenset({"desk-0", "desk-1", "shop", "pool-shop", "eve", "KEY_OF_ANOTHER"})

_CALLERS: tuple[Mapping[str, str], ...] = (
    {"POOL": "desk", "AGENT_ID": "desk-0", "THE_USER": "user", "NAME": "observer"},
    {"POOL": "desk", "AGENT_ID": "desk-1", "THE_USER": "eve", "NAME": "auditor"},
    {"POOL": "shop", "AGENT_ID": "desk-0", "THE_USER": "eve", "NAME": "eve"},
    {"POOL": "shop", "AGENT_ID": "shop", "THE_USER": "eve", "NAME": "admin"},
)
_OTHERS = {
    "AGENT_OR_POOL": "anyone",
    "COMM_ID": "c1",
    "GOAL_ID": "g1",
    "ROUTER": "r1",
    "REASON": "unreadable",
    "NONCE": "n1",
    "DEED": "launched",
    "WEBHOOK_ID": "w1",
    "TENANT": "acme",
}
_ANY = dict.fromkeys((*_CALLERS[0], *_OTHERS), "*")
_OF_STREAMS = (
    "STREAM.CREATE.{0}",
    "STREAM.UPDATE.{0}",
    "STREAM.DELETE.{0}",
    "STREAM.PURGE.{0}",
    "STREAM.INFO.{0}",
    "STREAM.MSG.GET.{0}",
    "STREAM.MSG.DELETE.{0}",
    "DIRECT.GET.{0}",
    "CONSUMER.CREATE.{0}",
    "CONSUMER.CREATE.{0}.mine.>",
    "CONSUMER.DURABLE.CREATE.{0}.mine",
    "CONSUMER.DELETE.{0}.mine",
    "CONSUMER.LIST.{0}",
    "CONSUMER.NAMES.{0}",
    "CONSUMER.INFO.{0}.any",
    "CONSUMER.MSG.NEXT.{0}.any",
    "CONSUMER.MSG.NEXT.{0}.pool-desk",
    "CONSUMER.MSG.NEXT.{0}.pool-shop",
)
_OF_THE_SERVER = (
    ">",
    "*",
    "ioa.>",
    "ioa.v1.>",
    "_INBOX.>",
    "_INBOX.KEY_OF_CALLER.r1",
    "_INBOX.KEY_OF_ANOTHER.r1",
    "_INBOX.KEY_OF_ANOTHER.>",
    "$JS.>",
    "$JS.API.INFO",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.>",
    "$KV.>",
    "$O.>",
    "$SRV.>",
    "$SRV.PING",
    "$SRV.INFO.ioa-groups",
    "$SYS.>",
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.USER.AUTH",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.CONNZ",
    "$SYS.REQ.SERVER.S1.KICK",
    "$SYS.REQ.SERVER.S1.RELOAD",
    "$SYS.ACCOUNT.IOA.CONNECT",
    "$SYS.ACCOUNT.*.CONNECT",
    "mine",
)
_VIOLATION = re.compile(rb"-ERR 'Permissions Violation for (Publish|Subscription) to \"([^\"]*)\"")
_MESSAGE = re.compile(rb"(H?MSG) (\S+) .*?(\d+)\r\n")
Deed = Literal["publish", "subscribe"]


def subjects() -> list[str]:
    """List the subjects of the matrix, sorted."""
    found = set(_OF_THE_SERVER)
    for row in (one for one in documented() if "." in one.pattern):
        for caller in (*_CALLERS, _ANY):
            found.add(_named(row.pattern, {**_OTHERS, **caller}))
    found |= {f"$JS.API.{request.format(stream)}" for stream in STREAMS for request in _OF_STREAMS}
    found |= {f"$JS.ACK.{stream}.any.1.1.1.1.0" for stream in STREAMS}
    found |= {
        f"$KV.{stream.removeprefix('KV_')}.{key}" for stream in STREAMS if stream.startswith("KV_") for key in ("x", "x.y", ">")
    }
    found |= {f"$O.{stream.removeprefix('OBJ_')}.{part}.x" for stream in STREAMS if stream.startswith("OBJ_") for part in "CMP"}
    return sorted(found)


def _named(pattern: str, names: Mapping[str, str]) -> str:
    tokens = []
    for token in pattern.split("."):
        name = names.get(token.removeprefix("_"), "")
        tokens.append(token if not name else name if name.startswith(("*", "_")) or not token.startswith("_") else f"_{name}")
    return ".".join(tokens)


@dataclass(frozen=True)
class Matrix:
    """The roles that may publish, and that may subscribe, by subject."""

    publish: Mapping[str, frozenset[str]]
    subscribe: Mapping[str, frozenset[str]]

    def render(self) -> str:
        """Write one line for each subject: the roles that may publish, and the roles that may subscribe."""
        lines = [f"{one} | {_list(self.publish[one])} | {_list(self.subscribe[one])}" for one in sorted(self.publish)]
        return "\n".join(["subject | publish | subscribe", *lines, ""])


def _list(roles: Iterable[str]) -> str:
    return " ".join(sorted(roles)) or "-"


@asynccontextmanager
async def open_server_of_roles(folder: Path) -> AsyncIterator[Secured]:
    """Run a nats-server with a key of each role, and no stream or service."""
    async with open_secured(folder, POOLS, callout=True, users=USERS, gateways=GATEWAYS) as secured:
        yield secured


async def measure(secured: Secured) -> Matrix:
    """Publish and subscribe with each role's key to each subject, and return what the server permits."""
    permitted: dict[Deed, dict[str, set[str]]] = {"publish": {}, "subscribe": {}}
    for deed, table in permitted.items():
        table.update({subject: set() for subject in subjects()})
        for role in ROLES:
            for subject in await permitted_subjects(secured, role, deed, table):
                table[subject].add(role)
    return Matrix(*({subject: frozenset(roles) for subject, roles in permitted[deed].items()} for deed in ("publish", "subscribe")))


async def permitted_subjects(secured: Secured, role: str, deed: Deed, tried: Iterable[str]) -> list[str]:
    """Return the subjects to which the server lets a role publish or subscribe."""
    keys = {"KEY_OF_CALLER": _key(secured, *ROLES[role]), "KEY_OF_ANOTHER": _key(secured, "shop", "shop")}
    real = {subject: _named(subject, keys) for subject in tried}
    async with open_wire(secured, *ROLES[role]) as (reader, writer):
        refused: set[str] = set()
        for number, subject in enumerate(real.values(), start=1):
            sid = str(number)
            commands = (f"PUB {subject} 0\r\n\r\n",) if deed == "publish" else (f"SUB {subject} {sid}\r\n", f"UNSUB {sid}\r\n")
            writer.write("".join(commands).encode())
            if number % 100 == 0:
                refused |= await _refused(reader, writer)
        refused |= await _refused(reader, writer)
    return [subject for subject, named in real.items() if named not in refused]


async def delivered_subjects(
    secured: Secured, sender: str, listener: str, patterns: Iterable[str], sent: Iterable[str]
) -> set[str]:
    """Return the messages of one role that reach another role."""
    keys = {**ROLES, "admin": ("admin", "seed")}
    async with open_wire(secured, *keys[listener]) as (reader, writer), open_wire(secured, *keys[sender]) as (heard, told):
        for number, pattern in enumerate(patterns, start=1):
            writer.write(f"SUB {pattern} {number}\r\n".encode())
        await _until_pong(reader, writer)
        for subject in sent:
            told.write(f"PUB {subject} 0\r\n\r\n".encode())
        await _until_pong(heard, told)
        found = await _until_pong(reader, writer)
    return {subject.decode() for _, subject, _ in _MESSAGE.findall(found)}


async def _refused(reader: StreamReader, writer: StreamWriter) -> set[str]:
    return {subject.decode() for _, subject in _VIOLATION.findall(await _until_pong(reader, writer))}


async def _until_pong(reader: StreamReader, writer: StreamWriter) -> bytes:
    """Return what the server writes until it has handled every command written before."""
    writer.write(b"PING\r\n")
    await writer.drain()
    return await asyncio.wait_for(reader.readuntil(b"PONG\r\n"), 20)


def _key(secured: Secured, name: str, key: str) -> str:
    return public_key_of(read_key(str(secured.folder / name / key)).seed)


def names_another(role: str, subject: str) -> bool:
    """Whether a subject names a caller other than the role's own, or leaves the name open."""
    tokens = set(subject.split("."))
    return bool(tokens & ({"*", ">"} | (_CALLER_NAMES - _OWN.get(role, set()))))


async def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_server_of_roles(Path(folder)) as secured:
            GOLDEN.write_text((await measure(secured)).render(), encoding="utf-8")  # nothing else runs


if __name__ == "__main__":
    asyncio.run(_write())
