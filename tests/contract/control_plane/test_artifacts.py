"""What every artifact store promises: what comes out is what was referenced, or an error that says so."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.artifacts import NatsArtifacts
from ioa.adapters.nats.topology import ARTIFACTS, FILES
from ioa.errors import InvalidInputError, NotFoundError
from ioa.ports.delivery import Artifacts
from ioa.protocol.goals import Artifact
from ioa.testing.memory_artifacts import MemoryArtifacts

CSV = "text/csv"


@pytest.fixture
def store(client: Client | None) -> Artifacts:
    """An empty store."""
    return MemoryArtifacts() if client is None else NatsArtifacts(client.jetstream())


@pytest.mark.parametrize("size", [0, 1, 131_072, 3_000_001], ids=["empty", "one byte", "one chunk", "3 MB"])
async def test_a_file_comes_back_as_it_was_put(store: Artifacts, size: int) -> None:
    """Files of any size, larger than a message too, are fetched byte by byte as they were put."""
    data = random.Random(size).randbytes(size)
    artifact = await store.put("goal-1/in/0-sales.csv", "sales.csv", data, CSV)
    assert (artifact.size_bytes, artifact.sha256) == (size, hashlib.sha256(data).hexdigest())
    assert await store.get(artifact) == data


async def test_a_file_is_described_as_it_was_put(store: Artifacts) -> None:
    """Name, size, digest and media type can be read without the file, whatever the name is."""
    artifact = await store.put("goal-1/in/0-x", "Umsätze 2026 (Entwurf).csv", b"a,b\n", CSV)
    assert await store.describe("goal-1/in/0-x") == artifact


async def test_putting_again_replaces(store: Artifacts) -> None:
    """The same object name holds the last file put under it."""
    await store.put("object", "a.txt", b"old", "text/plain")
    new = await store.put("object", "a.txt", b"new", "text/plain")
    assert await store.get(new) == b"new"


async def test_a_changed_file_is_not_the_one_referenced(store: Artifacts) -> None:
    """A reference to what was replaced is refused, never answered with something else."""
    old = await store.put("object", "a.txt", b"old", "text/plain")
    await store.put("object", "a.txt", b"new", "text/plain")
    with pytest.raises(InvalidInputError, match="changed"):
        await store.get(old)


@pytest.mark.parametrize("object_name", ["nowhere", "a b/../c", "*", ">", "ünï", "x" * 300, " "])
async def test_an_unknown_object_is_not_found(store: Artifacts, object_name: str) -> None:
    """Whatever name is asked for, an object that is not there is not found, which no retry mends."""
    with pytest.raises(NotFoundError):
        await store.describe(object_name)
    with pytest.raises(NotFoundError):
        await store.get(Artifact(name="x", object_name=object_name, size_bytes=0, sha256="0" * 64))


async def test_nothing_is_called_nothing(store: Artifacts) -> None:
    """An empty object name names no object."""
    with pytest.raises(NotFoundError):
        await store.describe("")


async def test_files_put_at_once_are_all_there(store: Artifacts) -> None:
    """Files that are put side by side do not mix."""
    contents = {f"object-{number}": bytes([number]) * 200_000 for number in range(8)}
    stored = await asyncio.gather(*(store.put(name, name, data, CSV) for name, data in contents.items()))
    assert [await store.get(artifact) for artifact in stored] == list(contents.values())


async def test_an_object_of_another_program_is_described(nats_client: Client) -> None:
    """An object that `nats object put` stored has no headers of ours and still makes a reference that can be fetched."""
    bucket = await nats_client.jetstream().object_store(ARTIFACTS)
    await bucket.put("data/sales.csv", b"a,b\n1,2\n")
    artifact = await NatsArtifacts(nats_client.jetstream()).describe("data/sales.csv")
    assert (artifact.name, artifact.size_bytes, artifact.media_type) == ("sales.csv", 8, "application/octet-stream")
    assert await NatsArtifacts(nats_client.jetstream()).get(artifact) == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    ("object_name", "name"),
    [
        ("C:\\data\\sales.csv", "sales.csv"),
        ("reports/", "reports"),
        ("x" * 300, "x" * 200),
        ("..", "file"),
        ("a\nb", "a_b"),
        ("/", "file"),
    ],
)
async def test_an_object_of_any_name_makes_a_plain_file(nats_client: Client, object_name: str, name: str) -> None:
    """Names that other systems and programs give make references under a name that any folder takes."""
    bucket = await nats_client.jetstream().object_store(ARTIFACTS)
    await bucket.put(object_name, b"a,b\n")
    artifact = await NatsArtifacts(nats_client.jetstream()).describe(object_name)
    assert (artifact.name, artifact.object_name) == (name, object_name)


@pytest.mark.parametrize(
    "meta",
    [b"\xff", b"[]", b'"text"', b"{}x", b'{"name": 1}', b'{"name": "x", "digest": "SHA-256=!"}', b"[" * 5_000],
    ids=["bytes", "list", "text", "tail", "number", "digest", "deep"],
)
async def test_garbage_in_the_store_is_refused_and_replaced(nats_client: Client, meta: bytes) -> None:
    """What is said of an object may be anything; who refers to it is told, and who stores a file under its name does."""
    js = nats_client.jetstream()
    store = NatsArtifacts(js)
    encoded = base64.urlsafe_b64encode(b"odd").decode()
    await js.publish(f"$O.{FILES}.M.{encoded}", meta, stream=f"OBJ_{FILES}")
    with pytest.raises(InvalidInputError):
        await store.describe("odd")
    artifact = await store.put("odd", "odd.txt", b"even", "text/plain")
    assert await store.describe("odd") == artifact


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bucket", f"{FILES}\r\nPUB ioa.v1.goal 0\r\n\r\nPING"),
        ("bucket", ARTIFACTS),
        ("nuid", "x\r\nPUB ioa.v1.goal 0\r\n\r\nPING"),
        ("nuid", "*"),
        ("nuid", ""),
    ],
)
async def test_what_is_said_of_an_object_leads_to_its_own_bytes(nats_client: Client, field: str, value: str) -> None:
    """Who writes it can neither have a reader speak to the server for him, nor have it read what belongs to others."""
    js = nats_client.jetstream()
    store, heard = NatsArtifacts(js), await nats_client.subscribe("ioa.v1.goal")
    artifact = await store.put("odd", "odd.txt", b"odd", "text/plain")
    meta = f"$O.{FILES}.M.{base64.urlsafe_b64encode(b'odd').decode()}"
    info = json.loads((await js.get_last_msg(f"OBJ_{FILES}", meta)).data or b"{}")
    await js.publish(meta, json.dumps({**info, field: value}).encode())
    with pytest.raises(InvalidInputError, match="cannot be read"):
        await store.get(artifact)
    await nats_client.flush()
    assert heard.pending_msgs == 0


async def test_a_name_that_nothing_can_store_is_refused(nats_client: Client) -> None:
    """Half a surrogate pair names no object."""
    with pytest.raises(InvalidInputError, match="Unicode"):
        await NatsArtifacts(nats_client.jetstream()).describe("\ud800")
