"""The settings of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.runtime.settings import ProcessSettings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class GatewaySettings(ProcessSettings):
    """What the gateway is told besides what every process is."""

    http_port: int = Field(default=4280, ge=0, le=65_535, description="the port for HTTP; 0 takes a free one")
    http_address: str = Field(default="127.0.0.1", description="the address of that port; `*` is every one")
    http_urls: str = Field(
        default="",
        description="the URLs under which it is reached from elsewhere, with commas between; requests for others are refused",
    )
    http_run: str = Field(
        default="",
        description="what the run of a system is told apart by: sessions of another one are over; `ioa up` says so at each start",
        repr=False,
    )
    webhooks_inside: bool = Field(
        default=False, description="whether webhooks may lead to addresses of private networks and of this machine"
    )

    seats: Path | None = Field(
        default=None,
        description="the folder with the seeds of people's seats, by which they answer through the gateway, see `ioa credentials`",
    )

    def hosts(self, port: int) -> Mapping[str, str]:
        """Return what `Host` may say in a request that came to a port, and the scheme by which one comes there.

        Raises:
            InvalidInputError: A URL is none.
        """
        named = [urlsplit(url.strip()) for url in self.http_urls.split(",") if url.strip()]
        if any(one.scheme not in ("http", "https") or not one.netloc for one in named):
            raise InvalidInputError("IOA_HTTP_URLS: A URL is to be like https://ioa.example.com.")
        return {f"{host}:{port}": "http" for host in _LOOPBACK} | {one.netloc.lower(): one.scheme for one in named}

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the port."""
        return self.http_address in ("127.0.0.1", "::1", "localhost")
