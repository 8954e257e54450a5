"""The settings of discovery: besides those of every service, which engine holds the index and which model embeds."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.runtime.control_plane import ControlPlaneSettings


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

    def qdrant_key(self) -> str | None:
        """Return the key of the Qdrant server, from its file if one is named.

        Raises:
            InvalidInputError: The file cannot be read.
        """
        if self.qdrant_api_key_file is None:
            return self.qdrant_api_key
        try:
            return self.qdrant_api_key_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"Qdrant's key cannot be read ({error}).", hint="IOA_QDRANT_API_KEY_FILE names its file."
            ) from None
