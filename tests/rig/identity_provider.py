"""An identity provider that issues tokens, and says by HTTP on loopback which keys it signs with."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

AGENT = {"role": "agent", "agent": "guest-1", "pool": "guest"}
"""What its tokens say of their holder if nothing else is asked."""


@dataclass
class Provider:
    """An identity provider, which may be away. `keys` are those it signs with, by their ids; `document` what it says of itself."""

    url: str = ""
    away: bool = False
    takes: float = 0.0
    """Seconds for each answer."""
    document: object = None
    requests: int = 0
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=lambda: {"k1": ec.generate_private_key(ec.SECP256R1())})

    def token(self, claim: object = None, key_id: str = "k1", lasts: float = 600, **changed: object) -> str:
        """Issue a token."""
        claims = {
            "iss": self.url,
            "sub": "guest@example.com",
            "aud": "ioa",
            "exp": int(time.time() + lasts),
            "ioa": claim or AGENT,
        }
        return jwt.encode({**claims, **changed}, self.keys[key_id], algorithm="ES256", headers={"kid": key_id})

    def answer(self, path: str) -> Any:
        """Say what is asked for by HTTP."""
        if self.away:
            return None
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} if self.document is None else self.document
        public = {key_id: jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True) for key_id, key in self.keys.items()}
        return {"keys": [{**key, "kid": key_id, "use": "sig", "alg": "ES256"} for key_id, key in public.items()]}


@asynccontextmanager
async def open_provider() -> AsyncIterator[Provider]:
    """Run one on loopback."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(provider.takes)
            provider.requests += 1
            said = provider.answer(self.path)
            self.send_response(503 if said is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{web.server_port}"
    thread = Thread(target=web.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        await asyncio.to_thread(web.shutdown)
        web.server_close()
