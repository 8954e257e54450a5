"""HTTP: what the chart makes where that is wanted, and only there."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key
from ioa.adapters.ssrf import CLOUDS, is_public
from ioa.client.seat import named
from ioa.hosting.cluster_credentials import Plan, make_credentials
from ioa.hosting.roster import AccessRole, Holder
from tests.chart.rendering import RefusedError, environment_of, render

pytestmark = pytest.mark.chart


def test_only_who_is_named_reaches_the_gateway() -> None:
    """With peers of an Ingress controller nobody else connects."""
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]
    rules = render({"gateway": {"enabled": True, "from": peers}}).one("NetworkPolicy", "ioa-gateway")["spec"]["ingress"]
    assert [rule["from"] for rule in rules if {"port": "http", "protocol": "TCP"} in rule["ports"]] == [peers]


_PLACES = [
    "93.184.215.14", "2606:4700::1111",
    "10.96.0.1", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.0.1", "192.168.1.1", "198.18.0.1",
    "224.0.0.1", "255.255.255.255", "::1", "fd00:ec2::254", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1",
]  # fmt: skip


def test_webhooks_lead_out_and_nowhere_inside() -> None:
    """The policy lets through what the gateway itself would, at the port of HTTPS, so that two things keep the inside closed."""
    rendered = render({"gateway": {"enabled": True}})
    assert "IOA_WEBHOOKS_INSIDE" not in environment_of(rendered.one("Deployment", "ioa-gateway"))
    outside = rendered.one("NetworkPolicy", "ioa-gateway")["spec"]["egress"][-1]
    assert outside["ports"] == [{"port": 443, "protocol": "TCP"}]
    blocks = [peer["ipBlock"] for peer in outside["to"]]
    reached = [place for place in _PLACES if any(_holds(block, place) for block in blocks)]
    assert reached == [place for place in _PLACES if is_public(place)] == _PLACES[:2]


def test_clouds_hand_out_no_keys_to_what_the_chart_runs() -> None:
    """By default no rule leads to where clouds serve their machines: the chart leaves out what the gateway knows of them."""
    model = {"baseUrl": "https://models.example.com/v1", "name": "large"}
    rendered = render({"gateway": {"enabled": True}, "model": model})
    of_model, of_webhooks = (
        [peer["ipBlock"] for peer in rendered.one("NetworkPolicy", f"ioa-{name}")["spec"]["egress"][-1]["to"]]
        for name in ("calculator", "gateway")
    )
    served = [str(ipaddress.ip_network(cloud)[-1]) for cloud in CLOUDS]
    assert [place for place in served if any(_holds(block, place) for block in (*of_model, *of_webhooks))] == []
    assert sorted(network for block in of_model for network in block["except"]) == sorted(CLOUDS)
    assert not any(map(is_public, served))


def _holds(block: dict[str, Any], place: str) -> bool:
    within = [ipaddress.ip_address(place) in ipaddress.ip_network(net) for net in (block["cidr"], *block["except"])]
    return within[0] and not any(within[1:])


@pytest.mark.parametrize("role", ["admin", "observer"])
def test_the_test_by_http_needs_somebody_who_makes_its_key(role: str) -> None:
    """With an admin among the users `helm test` reaches the gateway, past `from` too; without one nobody gets an admin's key."""
    users = [{"name": "user", "role": "user"}, {"name": "boss", "role": role}]
    gateway = {"enabled": True, "from": [{"podSelector": {}}], "service": {"port": 8080}}
    rendered = render({"gateway": gateway, "credentials": {"users": users}})
    reached = [rule for rule in rendered.one("NetworkPolicy", "ioa-test")["spec"]["egress"] if rule["ports"][0]["port"] == 4280]
    let_in = rendered.one("NetworkPolicy", "ioa-gateway")["spec"]["ingress"][1]["from"]
    wanted = role == "admin"
    assert (rendered.has("Pod", "ioa-test-http"), len(reached), len(let_in)) == (wanted, int(wanted), 1 + wanted)
    if wanted:
        told = environment_of(rendered.one("Pod", "ioa-test-http"))
        volumes = {one["name"]: one for one in rendered.one("Pod", "ioa-test-http")["spec"]["volumes"]}
        assert (told["GATEWAY"], told["KEY_OF"]) == ("http://ioa-gateway:8080", "user")
        assert volumes["credentials"]["secret"]["secretName"] == "ioa-boss-nats"


def test_an_ingress_without_a_host_is_refused() -> None:
    """Before anything is installed, with what to set."""
    with pytest.raises(RefusedError, match=r"set gateway\.publicUrl"):
        render({"gateway": {"enabled": True, "ingress": {"enabled": True}}})


_SEATS: dict[str, Any] = {"enabled": True, "seats": ["anna", "Bob_2"]}


def test_people_have_seats_whose_keys_the_gateway_finds(tmp_path: Path) -> None:
    """What the Job makes for each person lies in the pods where the gateway looks for it, and lets in that person alone."""
    rendered = render({"gateway": _SEATS})
    plan = Plan.model_validate_json(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    make_credentials(plan, FolderSecrets(tmp_path / "secrets"))
    pod = dict(rendered.pods())["Deployment/ioa-gateway"]
    [volume] = [one["secret"] for one in pod["volumes"] if one["name"] == "seats"]
    [mount] = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "seats"]
    assert environment_of(rendered.one("Deployment", "ioa-gateway"))["IOA_SEATS"] == mount["mountPath"]
    held = {item["path"]: read_key(str(tmp_path / "secrets" / volume["secretName"] / item["key"])).seed for item in volume["items"]}
    conf = (tmp_path / "secrets" / plan.authorization / "authorization.conf").read_text()
    assert [(seat, public_key_of(held[f"{seat}/{seat}"]) in conf) for seat in map(named, _SEATS["seats"])] == [
        ("human-anna", True),
        ("human-Bob_2", True),
    ]
    anna = plan.secrets[volume["secretName"]].seeds["human-anna"]
    assert anna == Holder(name="human-anna", role=AccessRole.AGENT, pool="human-anna")
    [names] = [rule["resourceNames"] for rule in rendered.one("Role", "ioa-credentials")["rules"] if "resourceNames" in rule]
    assert volume["secretName"] in names


def test_nobody_has_the_name_of_an_agent() -> None:
    """A person and an agent that are one member are refused before there are keys of both."""
    with pytest.raises(RefusedError, match='has an agent "human-7", which is a person\'s seat'):
        render({"gateway": {"enabled": True, "seats": ["7"]}, "agentPools": [{"name": "human", "target": "a.py:agent"}]})
