"""Secrets of a Kubernetes namespace, over its API, as the pod's own service account. For jobs: every call blocks."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from ioa.errors import InvalidInputError, UnavailableError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_TIMEOUT_SECONDS = 10


@contextmanager
def open_kubernetes_secrets(
    *, verify: bool = True, account: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ
) -> Iterator[KubernetesSecrets]:
    """Connect to the API of the cluster this pod runs in, and close at the end.

    Args:
        verify: Whether the API server's certificate is checked. Without it, whoever stands in between gets the pod's token.
        account: Where the service account's token is.
        environment: Where the API server's address is.

    Raises:
        InvalidInputError: This is no pod, or it was given no service account's token, or no authority to check the server by.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        token, namespace = (account / "token").read_text(encoding="ascii").strip(), (account / "namespace").read_text().strip()
    except OSError as error:
        raise InvalidInputError(
            f"{error.filename} cannot be read: {error.strerror}.", hint="Run this in a pod with a token."
        ) from None
    if host is None:
        raise InvalidInputError("KUBERNETES_SERVICE_HOST is not set.", hint="Run this in a pod.")
    authority = account / "ca.crt"
    if verify and not authority.exists():
        raise InvalidInputError(
            f"{authority} is not there: this cluster does not publish the authority of its API server.",
            hint="Have it published; on a cluster for tests, set credentials.verifyApiServer: false.",
        )
    name = f"[{host}]" if ":" in host else host
    with httpx.Client(
        base_url=f"https://{name}:{port}/api/v1/namespaces/{namespace}/secrets",
        headers={"Authorization": f"Bearer {token}"},
        verify=ssl.create_default_context(cafile=str(authority)) if verify else _unverified(),
        timeout=_TIMEOUT_SECONDS,
        trust_env=False,
    ) as client:
        yield KubernetesSecrets(client)


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class KubernetesSecrets:
    """Read and write Secrets by name. `client` leads to the namespace's collection of them."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return what a Secret holds, or None if there is none of this name.

        Raises:
            UnavailableError: The API does not answer, or refuses.
        """
        answer = self._ask("GET", name)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        data = self._checked(answer, name).json().get("data") or {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def create(self, name: str, data: Mapping[str, bytes], labels: Mapping[str, str]) -> None:
        """Make a Secret that is not there yet.

        Raises:
            UnavailableError: The API does not answer, or refuses, as it does when there is one meanwhile.
        """
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": dict(labels)}, "data": _encoded(data)}
        self._checked(self._ask("POST", "", secret), name)

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Put keys into a Secret; its other keys stay.

        Raises:
            UnavailableError: The API does not answer, or refuses.
        """
        self._checked(self._ask("PATCH", name, {"data": _encoded(data)}), name)

    def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            return self._client.request(method, path, json=body, headers={"Content-Type": kind})
        except httpx.HTTPError as error:
            raise UnavailableError(f"The Kubernetes API does not answer ({str(error) or type(error).__name__}).") from None

    @staticmethod
    def _checked(answer: httpx.Response, name: str) -> httpx.Response:
        if answer.is_success:
            return answer
        try:
            why = str(answer.json()["message"])
        except (ValueError, KeyError, TypeError):
            why = answer.reason_phrase
        raise UnavailableError(f"The Kubernetes API refuses the Secret {name}: {why} ({answer.status_code}).")


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}
