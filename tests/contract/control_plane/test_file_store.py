"""What every store of files promises: a file is there when it is whole, and then for good, under one name and as it was put."""

from __future__ import annotations

import hashlib
import random
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_files import NatsFileStore, StoredFile
from ioa.errors import ConflictError
from ioa.protocol.goals import Artifact
from ioa.protocol.setup.file_requests import PIECE_BYTES, OwnerBytes
from ioa.testing.manual_clock import NEW_YEAR
from tests.rig.stored_files import OWNER, fetch_file, store_file

CSV = "text/csv"


def counted(owner: str, size_bytes: int) -> dict[str, OwnerBytes]:
    """Return the counted bytes of an owner with a file."""
    return {owner: OwnerBytes(owner=owner, size_bytes=size_bytes, files=1)}


@pytest.fixture
def store(client: Client) -> NatsFileStore:
    """An empty store."""
    return NatsFileStore(client)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 3_000_001], ids=["empty", "one byte", "one piece", "3 MB"])
async def test_a_file_comes_back_as_it_was_put(store: NatsFileStore, size: int) -> None:
    """Files of any size, larger than a message too, are read byte by byte as they were put."""
    data = random.Random(size).randbytes(size)
    artifact = await store_file(store, "goal-1/sales", "Umsätze 2026 (Entwurf).csv", data, CSV)
    found = await store.find("goal-1/sales")
    assert (await fetch_file(store, artifact), found is not None and found.artifact) == (data, artifact)


async def test_a_file_is_not_there_before_it_is_whole(store: NatsFileStore) -> None:
    """Nobody reads half a file; its place counts as its owner's from the first piece on."""
    artifact = Artifact(name="a", object_name="o", size_bytes=10_000, sha256="0" * 64)
    upload = await store.begin(OWNER, "o", 10_000, NEW_YEAR)
    after = await store.append(upload, b"half", 0)
    assert (await store.find("o"), await store.owners(OWNER)) == (None, counted(OWNER, 10_000))
    await store.append(upload, b"half", after)
    assert await store.complete(upload, artifact)
    assert await store.find("o") == StoredFile(artifact=artifact, upload=upload)


async def test_a_name_is_given_once(store: NatsFileStore) -> None:
    """Who comes second is told so, and nothing of what he put stays."""
    first = await store_file(store, "o", "a.txt", b"first")
    upload = await store.begin("user-eve", "o", 6, NEW_YEAR)
    await store.append(upload, b"second", 0)
    assert not await store.complete(upload, first.model_copy(update={"sha256": hashlib.sha256(b"second").hexdigest()}))
    assert (await fetch_file(store, first), await store.owners()) == (b"first", counted(OWNER, 4_096))


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
    assert await store.owners(OWNER) == {}


async def test_what_is_interrupted_goes(store: NatsFileStore) -> None:
    """Uploads that nobody goes on with leave nothing; those that began lately, and whole files, stay."""
    whole = await store_file(store, "whole", "a", b"whole")
    for name, minutes in (("old", 0), ("new", 60)):
        upload = await store.begin(f"user-{name}", name, 9_000, NEW_YEAR + timedelta(minutes=minutes))
        await store.append(upload, b"x", 0)
    assert list(await store.drop_interrupted(NEW_YEAR + timedelta(minutes=30))) == ["old"]
    assert await store.owners() == {**counted(OWNER, 4_096), **counted("user-new", 9_000)}
    assert await fetch_file(store, whole) == b"whole"


async def test_removed_file_counts_no_more(store: NatsFileStore) -> None:
    """Removing a file twice has the same effect as once."""
    await store_file(store, "o", "a", b"x" * 10_000)
    for _ in range(2):
        await store.remove("o")
    assert (await store.owners(OWNER), await store.find("o")) == ({}, None)


@pytest.mark.parametrize("object_name", ["nowhere", "*", ">"])
async def test_an_unknown_object_is_not_found(store: NatsFileStore, object_name: str) -> None:
    """Names are encoded, so that no name is a pattern."""
    await store_file(store, "o", "a", b"x")
    assert await store.find(object_name) is None
