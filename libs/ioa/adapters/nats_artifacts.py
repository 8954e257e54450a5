"""Files by reference, in the JetStream object store `IOA_ARTIFACTS`."""

from __future__ import annotations

import base64
import hashlib

from nats.js import JetStreamContext
from nats.js.api import ObjectMeta
from nats.js.errors import NotFoundError as StoreNotFoundError
from nats.js.errors import ObjectNotFoundError

from ioa.adapters.nats_failures import unavailable_unless_answered
from ioa.adapters.nats_handles import ObjectStoreHandle
from ioa.adapters.nats_topology import ARTIFACTS
from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goals import Artifact

_NAME, _MEDIA_TYPE = "Ioa-Name", "Ioa-Media-Type"


class NatsArtifacts:
    """Store and fetch files; what is fetched is checked against the digest in its reference."""

    def __init__(self, js: JetStreamContext) -> None:
        self._handle = ObjectStoreHandle(js, ARTIFACTS)

    async def put(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file."""
        meta = ObjectMeta(name=object_name, headers={_NAME: name, _MEDIA_TYPE: media_type})
        with unavailable_unless_answered("The artifact store"):
            store = await self._handle.open()
            await store.put(object_name, data, meta=meta)
        return Artifact(
            name=name,
            object_name=object_name,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            media_type=media_type,
        )

    async def get(self, artifact: Artifact) -> bytes:
        """Fetch a file and check it."""
        with unavailable_unless_answered("The artifact store"):
            store = await self._handle.open()
            try:
                found = await store.get(artifact.object_name)
            except (ObjectNotFoundError, StoreNotFoundError):
                raise NotFoundError(f"The file {artifact.name!r} is not in the artifact store.") from None
        data = found.data or b""
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
        return data

    async def describe(self, object_name: str) -> Artifact:
        """Build the reference of an object that somebody else stored, such as with `nats object put`."""
        with unavailable_unless_answered("The artifact store"):
            store = await self._handle.open()
            try:
                info = await store.get_info(object_name)
            except (ObjectNotFoundError, StoreNotFoundError):
                raise NotFoundError(
                    f"There is no object {object_name!r} in the artifact store.",
                    hint=f"Put it there first: nats object put {ARTIFACTS} FILE",
                ) from None
        headers = info.headers or {}
        digest = base64.urlsafe_b64decode((info.digest or "").removeprefix("SHA-256=")).hex()
        return Artifact(
            name=headers.get(_NAME, object_name.rsplit("/", 1)[-1]),
            object_name=object_name,
            size_bytes=info.size or 0,
            sha256=digest,
            media_type=headers.get(_MEDIA_TYPE, "application/octet-stream"),
        )
