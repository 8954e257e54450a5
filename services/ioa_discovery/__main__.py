"""Run one replica of discovery: `python -m ioa_discovery`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.connection import open_connection
from ioa.errors import InvalidInputError
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.process import StopSignal, background, run_process
from ioa_discovery.answering import open_answering
from ioa_discovery.engines import Engines, EngineSettings, open_engines
from ioa_discovery.recall import observe
from ioa_discovery.search.terms import english_stem


class DiscoverySettings(ControlPlaneSettings):
    """What discovery is told besides what every service is."""

    qdrant_url: str | None = Field(
        default=None, description="a Qdrant server; without one the engine runs in a process of discovery's own"
    )
    qdrant_api_key: str | None = Field(default=None, description="the key of that server")
    qdrant_api_key_file: Path | None = Field(default=None, description="a file with that key instead")
    index_folder: Path | None = Field(default=None, description="where that process keeps its index")
    embedding_model: str = Field(
        default="",
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )
    embedding_processes: int = Field(default=1, ge=1, le=64, description="processes that embed, one core each")

    def engines(self) -> EngineSettings:
        """Which index and which model.

        Raises:
            InvalidInputError: The file with the key cannot be read.
        """
        key = self.qdrant_api_key
        if self.qdrant_api_key_file is not None:
            try:
                key = self.qdrant_api_key_file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInputError(
                    f"Qdrant's key cannot be read ({error}).", hint="IOA_QDRANT_API_KEY_FILE names its file."
                ) from None
        return EngineSettings(self.qdrant_url, key, self.index_folder, self.embedding_model, self.embedding_processes)


async def serve(settings: DiscoverySettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set."""

    def engines(restarted: Callable[[], None]) -> AbstractAsyncContextManager[Engines]:
        return open_engines(settings.engines(), restarted=restarted)

    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_topology(client, settings, make=False),
        open_answering(client, settings, engines, english_stem) as (opened, feed),
        background(observe(opened.index, feed)),
    ):
        await stop.wait()


if __name__ == "__main__":
    run_process(DiscoverySettings, serve)
