"""Settings of the auth callout."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.errors import InvalidInputError
from ioa.runtime.settings import ProcessSettings


class CalloutSettings(ProcessSettings):
    """Settings of the auth callout, in addition to those of every process."""

    callout_issuer: str = Field(
        min_length=1, description="issuer of the tokens (`iss`): the URL of an OpenID Connect provider, unless JWKS is set"
    )
    callout_jwks: Path | None = Field(default=None, description="file with the issuer's public keys, instead of its URL")
    callout_audience: str = Field(min_length=1, description="audience of the tokens (`aud`)")
    callout_claim: str = Field(default="ioa", description="claim that contains role and name of the holder")
    callout_keys: Path = Field(
        default=Path("callout"),
        description="folder with the keys `asked` and `issuer`, and the file `revoked`, one subject per line",
    )
    callout_roster: Path = Field(
        default=Path("roster.json"), description="roster of the system; tokens cannot have the names in it"
    )

    def asked(self) -> NatsSettings:
        """Return the settings of the connection on which nats-server sends its requests."""
        return self.model_copy(update={"nats_seed": str(self.callout_keys / "asked")}).nats("ioa-authcallout-asked")

    def signing_seed(self) -> str:
        """Return the seed that signs replies.

        Raises:
            InvalidInputError: Its file cannot be read.
        """
        return read_text(self.callout_keys / "issuer").strip()


def read_text(path: Path) -> str:
    """Read a file of the credentials.

    Raises:
        InvalidInputError: It cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        hint = "`ioa credentials create --callout` writes the files of IOA_CALLOUT_KEYS and IOA_CALLOUT_ROSTER."
        raise InvalidInputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}.", hint=hint
        ) from None
