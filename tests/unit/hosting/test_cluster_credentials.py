"""Tests of how the credentials of a system on Kubernetes are made, kept and extended."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from ioa.adapters.nats.auth.roles import Service, of_agent, of_service
from ioa.adapters.secret_stores.kubernetes import KubernetesSecrets, open_kubernetes_secrets
from ioa.adapters.secret_stores.nkeys import create_seed, parse_key, public_key_of
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.cluster_credentials import ROUTE_PASSWORD, ROUTES, Plan, Rotation, make_credentials
from ioa.hosting.credential_store import AUTHORIZATION
from ioa.protocol.ids import AgentId, PoolId


def test_server_gets_the_public_key_and_permissions_of_each_seed(api: Api, secrets: KubernetesSecrets) -> None:
    """Each identity has its own seed; its key has the permissions of its role."""
    make_credentials(_plan(agents=2), secrets)
    keys = {key: _public(seed) for name in ("router", "writer") for key, seed in api.secret(name).items()}
    accounts = json.loads(api.secret("authorization")[AUTHORIZATION])["accounts"]
    allowed = {user["nkey"]: user["permissions"]["publish"]["allow"] for one in accounts.values() for user in one["users"]}
    assert allowed == {
        keys["seed"]: list(of_service(Service.ROUTER).publish),
        keys["writer-0"]: list(of_agent(AgentId("writer-0"), PoolId("writer")).publish),
        keys["writer-1"]: list(of_agent(AgentId("writer-1"), PoolId("writer")).publish),
    }


def test_roster_follows_the_plan(api: Api, secrets: KubernetesSecrets) -> None:
    """The same plan changes nothing, a larger pool keeps its keys, and a name that the plan omits cannot connect."""
    make_credentials(_plan(agents=1), secrets)
    before = dict(api.stored)
    assert (make_credentials(_plan(agents=1), secrets), api.stored) == ([], before)
    first = api.secret("writer")
    done = make_credentials(_plan(agents=2), secrets)
    assert done == ["wrote writer: writer-1", "wrote authorization: authorization.conf, roster.json"]
    grown = api.secret("writer")
    assert ({key: grown[key] for key in first}, len(grown)) == (first, 2)
    make_credentials(_plan(agents=1), secrets)
    assert _let_in(api) & {_public(seed) for seed in grown.values()} == {_public(first["writer-0"])}


def test_the_authorization_of_as_many_agents_as_the_chart_allows_fits_into_a_secret(api: Api, secrets: KubernetesSecrets) -> None:
    """Kubernetes takes 1 MiB; the chart refuses more than 800 agents."""
    make_credentials(_plan(agents=800), secrets)

    assert sum(map(len, api.secret("authorization").values())) < 1_048_576


def test_given_secret_is_only_read(api: Api, secrets: KubernetesSecrets) -> None:
    """Its key is authorized and not changed; a missing Secret or seed is an error."""
    with pytest.raises(InvalidInputError, match=r"The Secret mine is not there; it should hold seed\."):
        make_credentials(_plan(given="mine"), secrets)
    api.put("mine", {"sede": b"x"})
    with pytest.raises(InvalidInputError, match=r"The Secret mine holds none of seed\."):
        make_credentials(_plan(given="mine"), secrets)
    seed = create_seed()
    api.put("mine", {"seed": f"{seed}\n".encode()})
    make_credentials(_plan(given="mine"), secrets)
    assert api.secret("mine") == {"seed": f"{seed}\n".encode()}
    assert public_key_of(seed) in _let_in(api)


def test_nodes_know_each_other_by_a_password_that_stays(api: Api, secrets: KubernetesSecrets) -> None:
    """A node that restarts while others run must still connect."""
    make_credentials(_plan(), secrets)
    password = api.secret("authorization")[ROUTE_PASSWORD].decode()

    make_credentials(_plan(agents=2), secrets)

    assert api.secret("authorization")[ROUTES].decode() == (
        f'authorization {{ user: "ioa", password: "{password}" }}\n'
        f'routes [\n  "nats://ioa:{password}@nats-0:6222"\n  "nats://ioa:{password}@nats-1:6222"\n]\n'
    )


def test_rejection_by_the_api_is_reported(secrets: KubernetesSecrets, api: Api) -> None:
    """Rights that are missing are named as the API names them."""
    api.forbidden = True

    with pytest.raises(UnavailableError) as caught:
        make_credentials(_plan(), secrets)

    assert caught.value.message == "The Kubernetes API refuses the Secret authorization: you may not (403)."


def test_outside_a_pod_there_is_no_api() -> None:
    """The error names the place where it works."""
    with pytest.raises(InvalidInputError, match="cannot be read"), open_kubernetes_secrets({}, environment={}):
        pass


def test_a_token_is_shown_to_no_server_that_cannot_be_checked(tmp_path: Path) -> None:
    """A cluster that publishes no certificate authority is an error."""
    for name, content in (("token", "t"), ("namespace", "n")):
        (tmp_path / name).write_text(content)

    with pytest.raises(InvalidInputError) as caught, open_kubernetes_secrets({}, account=tmp_path, environment=_IN_A_POD):
        pass

    assert (
        caught.value.message
        == f"{tmp_path / 'ca.crt'} is missing: this cluster does not publish the certificate authority of its API server."
    )


_IN_A_POD = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


def _public(written: bytes) -> str:
    key = parse_key(written.decode())
    assert key is not None
    return public_key_of(key.seed)


class Api:
    """A fake Kubernetes API for the Secrets of one namespace, without authentication."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, str]] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        self.forbidden = False

    def put(self, name: str, data: Mapping[str, bytes]) -> None:
        self.stored[name] = {key: base64.b64encode(value).decode() for key, value in data.items()}

    def secret(self, name: str) -> dict[str, bytes]:
        return {key: base64.b64decode(value) for key, value in self.stored[name].items()}

    def answer(self, request: httpx.Request) -> httpx.Response:
        if self.forbidden:
            return httpx.Response(403, json={"kind": "Status", "message": "you may not"})
        name = request.url.path.rpartition("/secrets")[2].strip("/")
        body = json.loads(request.content) if request.content else {}
        if request.method == "POST":
            name = body["metadata"]["name"]
            if name in self.stored:
                return httpx.Response(409, json={"message": "already exists"})
            self.stored[name], self.labels[name] = body["data"], body["metadata"]["labels"]
        elif name not in self.stored:
            return httpx.Response(404, json={"message": "not found"})
        elif request.method == "PATCH":
            assert request.headers["Content-Type"] == "application/merge-patch+json"
            self.stored[name] = {**self.stored[name], **body["data"]}
        return httpx.Response(200, json={"metadata": {"name": name}, "data": self.stored[name]})


@pytest.fixture
def api() -> Api:
    """An empty namespace."""
    return Api()


@pytest.fixture
def secrets(api: Api) -> Iterator[KubernetesSecrets]:
    """The namespace's Secrets."""
    with httpx.Client(base_url="https://cluster/api/v1/namespaces/n/secrets", transport=httpx.MockTransport(api.answer)) as client:
        yield KubernetesSecrets(client, {"a": "b"})


def _plan(agents: int = 1, given: str | None = None) -> Plan:
    writers = {f"writer-{number}": {"name": f"writer-{number}", "role": "agent", "pool": "writer"} for number in range(agents)}
    return Plan.model_validate(
        {
            "secrets": {
                given or "router": {"given": given is not None, "seeds": {"seed": {"name": "router", "role": "service"}}},
                "writer": {"seeds": writers},
            },
            "authorization": "authorization",
            "routes": ["nats-0:6222", "nats-1:6222"],
            "labels": {"a": "b"},
        }
    )


def _let_in(api: Api) -> set[str]:
    accounts = json.loads(api.secret("authorization")[AUTHORIZATION])["accounts"].values()
    return {user["nkey"] for account in accounts for user in account["users"]}


def test_a_rotation_is_made_once_and_lets_in_both_keys_until_it_is_ended(api: Api, secrets: KubernetesSecrets) -> None:
    """Both keys connect while the pods are replaced; an omitted or ended rotation accepts no old key, nor does the next."""

    def make(*rotation: Rotation) -> tuple[str, set[str]]:
        plan = _plan(agents=1)
        make_credentials(plan.model_copy(update={"rotation": rotation[0] if rotation else None}), secrets)
        return _public(api.secret("writer")["writer-0"]), _let_in(api)

    first, _ = make()
    second, let_in = make(Rotation(id="a", of=("writer",)))
    assert make(Rotation(id="a", of=("writer",))) == (second, let_in)
    assert {first, second} <= let_in
    _, let_in = make(Rotation(id="a", of=("writer",), ended=True))
    assert (first in let_in, second in let_in) == (False, True)
    third, let_in = make(Rotation(id="b", of=("writer",)))
    assert (first in let_in, {second, third} <= let_in) == (False, True)
    assert make()[1] & {first, second, third} == {third}
