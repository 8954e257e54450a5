"""Settings of discovery: the index, the embedding model, and the settings of every service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.runtime.control_plane import ControlPlaneSettings


class DiscoverySettings(ControlPlaneSettings):
    """Settings of discovery."""

    qdrant_url: str | None = Field(
        default=None, description="a Qdrant server, for more than 20,000 agents; without one, an exact index in memory"
    )
    qdrant_api_key: str | None = Field(default=None, description="the key of that server")
    vectors_folder: Path | None = Field(default=None, description="folder for the vectors of cards, so that a restart is fast")
    embedding_model: str = Field(
        default="",
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )
