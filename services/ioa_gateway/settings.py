"""The settings of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.runtime.settings import ProcessSettings


class GatewaySettings(ProcessSettings):
    """The settings of the gateway, in addition to the settings of every process."""

    http_port: int = Field(default=4280, ge=0, le=65_535, description="the HTTP port; 0: a free port")
    http_address: str = Field(default="127.0.0.1", description="the address that the port is bound to; `*`: all addresses")
    http_urls: str = Field(
        default="",
        description="the public URLs of the gateway, separated by commas; requests for other hosts are rejected",
    )
    http_run: str = Field(
        default="",
        description="a secret of a run of the system: browser sessions end with the run; `ioa up` sets it at each start",
        repr=False,
    )
    webhooks_inside: bool = Field(
        default=False, description="whether webhooks may have addresses of private networks and of this machine"
    )
    seats: Path | None = Field(
        default=None,
        description="the folder with the NATS keys of people's seats (`ioa credentials`)",
    )

    def hosts(self, port: int) -> Mapping[str, str]:
        """Return the scheme of each accepted `Host`, including the local ones with a port."""
        urls = [urlsplit(url.strip()) for url in self.http_urls.split(",") if url.strip()]
        if any(url.scheme not in ("http", "https") or not url.netloc for url in urls):
            raise InvalidInputError(f"IOA_HTTP_URLS: {self.http_urls!r} is invalid; write URLs such as https://ioa.example.com.")
        local = {f"{host}:{port}": "http" for host in ("127.0.0.1", "localhost", "[::1]")}
        return local | {url.netloc.lower(): url.scheme for url in urls}

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the port."""
        return self.http_address in ("127.0.0.1", "::1", "localhost")
