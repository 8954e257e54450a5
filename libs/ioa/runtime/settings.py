"""Settings of a process: each field is read from the variable of its name when the process starts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.errors import InvalidInputError
from ioa.protocol.model import Model, as_seconds
from ioa.protocol.texts import problems_of
from ioa.runtime.known_settings import LOOPBACK, refuse_unknown, variable

S = TypeVar("S", bound="ProcessSettings")

DEFAULT_URL = "nats://127.0.0.1:4222"

_DURATIONS = (timedelta, timedelta | None)


class ProcessSettings(Model):
    """Settings of every process."""

    nats_url: str = Field(default=DEFAULT_URL, description="where NATS is")
    nats_credentials: str | None = Field(default=None, description="path of a .creds file")
    nats_seed: str | None = Field(default=None, description="an nkey seed or the path of its file, see `ioa credentials`")
    nats_token: str | None = Field(
        default=None,
        description="a token of the operator's identity provider, or the path of its file, which is read for each connection",
    )
    nats_ca: str | None = Field(default=None, description="path of the certificates that the server's is checked against (TLS)")
    nats_certificate: str | None = Field(default=None, description="path of the client's certificate and key (TLS)")
    data: Path = Field(
        default=Path(".ioa"), description="the folder of a system on this machine; a user that can read it may connect"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="the least level that is logged")
    log_format: Literal["json", "console"] = Field(default="json", description="one JSON object a line, or lines for people")
    log_content: bool = Field(default=False, description="let log lines show what users and agents wrote")
    metrics_port: int | None = Field(
        default=None, ge=0, le=65_535, description="serve /metrics, /healthz and /readyz on this port; 0 takes a free one"
    )
    metrics_address: str = Field(default=LOOPBACK, description="the address of that port; `*` is every one")

    @property
    def has_own_key(self) -> bool:
        """Whether the process has its own key for NATS."""
        return any(one is not None for one in (self.nats_seed, self.nats_credentials, self.nats_token))

    @property
    def stops_within(self) -> timedelta | None:
        """Maximum time from SIGTERM until the process ends by force; None: no limit."""
        return None

    def nats(self, name: str) -> NatsSettings:
        """Return the settings of this process's connection."""
        return NatsSettings(
            self.nats_url,
            name,
            credentials=self.nats_credentials,
            seed=self.nats_seed,
            ca=self.nats_ca,
            certificate=self.nats_certificate,
            data=self.data,
            token=self.nats_token,
        )


def settings_from(kind: type[S], environment: Mapping[str, str]) -> S:
    """Read settings from variables such as `IOA_NATS_URL` for the field `nats_url`. Durations are seconds or ISO 8601.

    Raises:
        InvalidInputError: A value is malformed; the message names its variable. Or a variable is no setting of any process.
    """
    refuse_unknown(environment, map(variable, kind.model_fields))
    values: dict[str, object] = {}
    for name, field in kind.model_fields.items():
        written = environment.get(variable(name))
        if written is not None:
            values[name] = as_seconds(written) if field.annotation in _DURATIONS else written
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        [(field_name, why), *_] = problems_of(error)
        raise InvalidInputError(f"{variable(field_name)}: {why}.") from None
