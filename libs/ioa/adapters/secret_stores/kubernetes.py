"""Secrets of a Kubernetes namespace, over the API server, with the pod's service account. Every call blocks."""

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
    labels: Mapping[str, str], *, verify: bool = True, account: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ
) -> Iterator[KubernetesSecrets]:
    """Connect to the API server of this pod's cluster, and close the connection at the end.

    Args:
        labels: Labels of new Secrets.
        verify: Whether the API server's certificate is verified. Without verification, a proxy can read the pod's token.
        account: Folder of the service account's token.
        environment: Environment variables with the API server's address.

    Raises:
        InvalidInputError: This process runs in no pod, or the pod has no token, or no certificate authority of the API server.
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
            f"{authority} is missing: this cluster does not publish the certificate authority of its API server.",
            hint="Publish it; on a cluster for tests, set credentials.verifyApiServer: false.",
        )
    name = f"[{host}]" if ":" in host else host
    with httpx.Client(
        base_url=f"https://{name}:{port}/api/v1/namespaces/{namespace}/secrets",
        headers={"Authorization": f"Bearer {token}"},
        verify=ssl.create_default_context(cafile=str(authority)) if verify else _unverified(),
        timeout=_TIMEOUT_SECONDS,
        trust_env=False,
    ) as client:
        yield KubernetesSecrets(client, labels)


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class KubernetesSecrets:
    """Read and write Secrets by name. The base URL of `client` is the namespace's collection of Secrets."""

    def __init__(self, client: httpx.Client, labels: Mapping[str, str]) -> None:
        self._client = client
        self._labels = labels

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return the data of a Secret, or None if there is no Secret of this name.

        Raises:
            UnavailableError: The API server does not answer, or rejects the request.
        """
        answer = self._ask("GET", name)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        data = self._checked(answer, name).json().get("data") or {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Write keys of a Secret, which is created if it is missing; its other keys stay.

        Raises:
            UnavailableError: The API server does not answer, or rejects the request.
        """
        answer = self._ask("PATCH", name, {"data": _encoded(data)})
        if answer.status_code == httpx.codes.NOT_FOUND:
            about = {"name": name, "labels": dict(self._labels)}
            answer = self._ask("POST", "", {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": _encoded(data)})
        self._checked(answer, name)

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
