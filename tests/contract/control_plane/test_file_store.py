"""What every store of files promises: a file is there when it is whole, and then for good, under one name and as it was put."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_files import NatsFileStore, OwnBytes
from ioa.adapters.nats.streams.topology import ARTIFACTS, FILES
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.protocol.files import PIECE_BYTES
from ioa.protocol.goals import Artifact
from ioa.testing.manual_clock import NEW_YEAR
from tests.rig.stored_files import OWNER, fetch_file, store_file

CSV = "text/csv"


@pytest.fixture
def store(client: Client) -> NatsFileStore:
    """An empty store."""
    return NatsFileStore(client)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 3_000_001], ids=["empty", "one byte", "one piece", "3 MB"])
async def test_a_file_comes_back_as_it_was_put(store: NatsFileStore, size: int) -> None:
    """Files of any size, larger than a message too, are read byte by byte as they were put."""
    data = random.Random(size).randbytes(size)
    artifact = await store_file(store, "goal-1/sales", "Umsätze 2026 (Entwurf).csv", data, CSV)
    assert (await fetch_file(store, artifact), await store.named("goal-1/sales")) == (data, artifact)


async def test_a_file_is_not_there_before_it_is_whole(store: NatsFileStore) -> None:
    """Nobody reads half a file; its place counts as its owner's from the first piece on."""
    artifact = Artifact(name="a", object_name="o", size_bytes=10_000, sha256="0" * 64)
    upload = await store.begin(OWNER, "o", 10_000, NEW_YEAR)
    after = await store.append(upload, b"half", 0)
    seen = (await store.named("o"), await store.find("o", "0" * 64), await store.stored_by(OWNER))
    assert seen == (None, None, OwnBytes(10_000, 1))
    await store.append(upload, b"half", after)
    assert await store.complete(upload, artifact, 2)
    assert await store.named("o") == artifact


async def test_a_name_is_given_once(store: NatsFileStore) -> None:
    """Who comes second is told so, and nothing of what he put stays."""
    first = await store_file(store, "o", "a.txt", b"first")
    upload = await store.begin("user-eve", "o", 6, NEW_YEAR)
    await store.append(upload, b"second", 0)
    assert not await store.complete(upload, first.model_copy(update={"sha256": hashlib.sha256(b"second").hexdigest()}), 1)
    assert (await fetch_file(store, first), dict(await store.owners())) == (b"first", {OWNER: OwnBytes(4_096, 1)})


async def test_pieces_follow_each_other(store: NatsFileStore) -> None:
    """A piece is stored behind the last one alone: one that comes twice, or to an upload that was begun anew, is refused."""
    upload = await store.begin(OWNER, "o", 100, NEW_YEAR)
    after = await store.append(upload, b"1", 0)
    for wrong in (0, after + 7):
        with pytest.raises(ConflictError):
            await store.append(upload, b"2", wrong)
    await store.begin(OWNER, "o", 100, NEW_YEAR)
    with pytest.raises(ConflictError):
        await store.append(upload, b"2", after)
    assert (await store.stored_by(OWNER)).size_bytes <= 4_096


async def test_what_is_interrupted_goes(store: NatsFileStore) -> None:
    """Uploads that nobody goes on with leave nothing; those that began lately, and whole files, stay."""
    whole = await store_file(store, "whole", "a", b"whole")
    for name, minutes in (("old", 0), ("new", 60)):
        upload = await store.begin(f"user-{name}", name, 9_000, NEW_YEAR + timedelta(minutes=minutes))
        await store.append(upload, b"x", 0)
    assert list(await store.drop_interrupted(NEW_YEAR + timedelta(minutes=30))) == ["old"]
    assert dict(await store.owners()) == {OWNER: OwnBytes(4_096, 1), "user-new": OwnBytes(9_000, 1)}
    assert await fetch_file(store, whole) == b"whole"


async def test_removed_file_counts_no_more(store: NatsFileStore) -> None:
    """Removing a file twice has the same effect as once."""
    await store_file(store, "o", "a", b"x" * 10_000)
    for _ in range(2):
        await store.remove("o")
    assert (await store.stored_by(OWNER), await store.named("o")) == (OwnBytes(), None)


@pytest.mark.parametrize("object_name", ["nowhere", "*", ""])
async def test_an_unknown_object_is_not_found(store: NatsFileStore, object_name: str) -> None:
    """Whatever name is asked for, an object that is not there is not found, which no retry mends."""
    with pytest.raises(NotFoundError):
        await store.describe(object_name)
    assert (await store.named(object_name), await store.find(object_name, "0" * 64)) == (None, None)


async def test_files_put_at_once_are_all_there(store: NatsFileStore) -> None:
    """Files that are put side by side do not mix."""
    contents = {f"object-{number}": bytes([number]) * 700_000 for number in range(8)}
    stored = await asyncio.gather(*(store_file(store, name, name, data, CSV) for name, data in contents.items()))
    assert [await fetch_file(store, artifact) for artifact in stored] == list(contents.values())


async def test_an_object_of_another_program_is_described(client: Client) -> None:
    """An object that `nats object put` stored has no headers of ours and still makes a reference that can be read."""
    bucket = await client.jetstream().object_store(ARTIFACTS)
    await bucket.put("data/sales.csv", b"a,b\n1,2\n" * 40_000)
    store = NatsFileStore(client)
    artifact = await store.describe("data/sales.csv")
    assert (artifact.name, artifact.size_bytes, artifact.media_type) == ("sales.csv", 320_000, "application/octet-stream")
    assert await fetch_file(store, artifact) == b"a,b\n1,2\n" * 40_000


async def test_what_the_system_stores_shadows_no_object_of_users(client: Client) -> None:
    """A name among the users' objects means that object, whatever the system stores under the same name."""
    bucket, store = await client.jetstream().object_store(ARTIFACTS), NatsFileStore(client)
    await bucket.put("sales.csv", b"1000\n2000\n")
    await store_file(store, "sales.csv", "sales.csv", b"1\n2\n")
    assert await fetch_file(store, await store.describe("sales.csv")) == b"1000\n2000\n"


@pytest.mark.parametrize(
    ("object_name", "name"),
    [
        ("C:\\data\\sales.csv", "sales.csv"),
        ("x" * 300, "x" * 200),
        ("..", "file"),
        ("a\nb", "a_b"),
    ],
)
async def test_an_object_of_any_name_makes_a_plain_file(client: Client, object_name: str, name: str) -> None:
    """Names that other systems and programs give make references under a name that any folder takes."""
    bucket = await client.jetstream().object_store(ARTIFACTS)
    await bucket.put(object_name, b"a,b\n")
    artifact = await NatsFileStore(client).describe(object_name)
    assert (artifact.name, artifact.object_name) == (name, object_name)


@pytest.mark.parametrize(
    "meta",
    [b"\xff", b'{"name": 1}', b'{"name": "x", "digest": "SHA-256=!"}'],
    ids=["bytes", "number", "digest"],
)
async def test_garbage_in_the_users_store_is_refused(client: Client, meta: bytes) -> None:
    """What is said of an object there may be anything; who refers to it is told."""
    await client.jetstream().publish(_meta("odd", ARTIFACTS), meta)
    with pytest.raises(InvalidInputError):
        await NatsFileStore(client).describe("odd")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bucket", ARTIFACTS),
        ("nuid", "x\r\nPUB ioa.v1.goal 0\r\n\r\nPING"),
        ("nuid", "*"),
    ],
)
async def test_what_is_said_of_an_object_leads_to_its_own_bytes(client: Client, field: str, value: str) -> None:
    """Who could write it can neither have group setup speak to the server for him, nor have it read what belongs to others."""
    js, store, heard = client.jetstream(), NatsFileStore(client), await client.subscribe("ioa.v1.goal")
    await store_file(store, "odd", "odd.txt", b"odd")
    info = json.loads((await js.get_last_msg(f"OBJ_{FILES}", _meta("odd"))).data or b"{}")
    await js.publish(_meta("odd"), json.dumps({**info, field: value}).encode())
    with pytest.raises(InvalidInputError, match="cannot be read"):
        await store.named("odd")
    await client.flush()
    assert heard.pending_msgs == 0


async def test_a_name_that_nothing_can_store_is_refused(client: Client) -> None:
    """Half a surrogate pair names no object."""
    with pytest.raises(InvalidInputError, match="Unicode"):
        await NatsFileStore(client).describe("\ud800")


def _meta(object_name: str, bucket: str = FILES) -> str:
    return f"$O.{bucket}.M.{base64.urlsafe_b64encode(object_name.encode()).decode()}"
