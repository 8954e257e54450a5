"""The settings of the auth callout: whose tokens it takes, and what it answers nats-server with."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.connection import NatsSettings
from ioa.errors import InvalidInputError
from ioa.runtime.settings import ProcessSettings
from ioa.runtime.watched_file import read_text

HINT = "IOA_CALLOUT_KEYS and IOA_CALLOUT_AUTHORIZATION name what `ioa credentials create --callout` makes."


class CalloutSettings(ProcessSettings):
    """What the auth callout is told besides what every process is."""

    callout_issuer: str = Field(default="", description="who issues the tokens (`iss`): an OIDC provider's URL, if JWKS is not set")
    callout_jwks: Path | None = Field(default=None, description="a file with the issuer's public keys, instead of asking its URL")
    callout_audience: str = Field(default="", description="whom the tokens are for (`aud`)")
    callout_claim: str = Field(default="ioa", description="the claim that says who the holder is here")
    callout_keys: Path = Field(
        default=Path("callout"), description="the folder with the keys `asked` and `issuer`, and `revoked`, a line for each subject"
    )
    callout_authorization: Path = Field(
        default=Path("authorization.conf"), description="what nats-server includes: names in it are no token's"
    )

    def check(self) -> None:
        """See that it is said whose tokens are taken.

        Raises:
            InvalidInputError: It is not.
        """
        if not self.callout_issuer or not self.callout_audience:
            raise InvalidInputError(
                "Whose tokens are taken is not set.",
                hint="Set IOA_CALLOUT_ISSUER and IOA_CALLOUT_AUDIENCE as the tokens say them.",
            )

    def asked(self) -> NatsSettings:
        """Return how to connect where nats-server asks."""
        return self.model_copy(update={"nats_seed": str(self.callout_keys / "asked")}).nats("ioa-authcallout-asked")

    def signing_seed(self) -> str:
        """Read the seed that answers are signed with.

        Raises:
            InvalidInputError: It cannot be read.
        """
        return read(self.callout_keys / "issuer").strip()


def read(path: Path) -> str:
    """Read a file of the callout.

    Raises:
        InvalidInputError: It cannot be read.
    """
    return read_text(path, HINT)
