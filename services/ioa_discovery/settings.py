"""Settings of discovery: the index, the embedding model, and the settings of every service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.runtime.control_plane import ControlPlaneSettings


class DiscoverySettings(ControlPlaneSettings):
    """Settings of discovery."""

    qdrant_url: str | None = Field(
        default=None, description="a Qdrant server, for more than 20,000 agents; without one, an exact index in memory"
    )
    qdrant_api_key: str | None = Field(default=None, description="the key of that server")
    qdrant_api_key_file: Path | None = Field(default=None, description="a file with that key instead")
    vectors_folder: Path | None = Field(default=None, description="folder for the vectors of cards, so that a restart is fast")
    embedding_model: str = Field(
        default="",
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )

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
