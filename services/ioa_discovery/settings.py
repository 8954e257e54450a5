"""The settings of discovery: besides those of every service, which engine holds the index and which model embeds."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.runtime.control_plane import ControlPlaneSettings


class DiscoverySettings(ControlPlaneSettings):
    """What discovery is told besides what every service is."""

    qdrant_url: str | None = Field(
        default=None, description="a Qdrant server; without one the engine runs in a process of discovery's own"
    )
    qdrant_api_key: str | None = Field(default=None, description="the key of that server")
    index_folder: Path | None = Field(default=None, description="where that process keeps its index")
    embedding_model: str = Field(
        default="",
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )
    embedding_processes: int = Field(default=1, ge=1, le=64, description="processes that embed, one core each")
