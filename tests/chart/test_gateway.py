"""HTTP: what the chart makes where that is wanted, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from ioa.hosting.cluster_credentials import Plan, UserIdentity
from ioa_gateway.settings import GatewaySettings
from tests.chart.rendering import RefusedError, environment_of, render

pytestmark = pytest.mark.chart

_INGRESS: dict[str, Any] = {
    "enabled": True,
    "publicUrl": "https://ioa.example.com",
    "ingress": {"enabled": True, "className": "nginx"},
}


def test_the_gateway_is_there_only_where_it_is_wanted() -> None:
    """By default there is no such pod, no way in, and no key made for one."""
    rendered = render()
    assert [name for name, _ in rendered.pods() if "gateway" in name] == []
    assert "gateway" not in str(rendered.one("ConfigMap", "ioa-credentials")["data"])


def test_the_gateway_has_a_credential_of_its_own() -> None:
    """What the Job is told to make is what the pods mount, in the role that acts for users."""
    rendered = render({"gateway": {"enabled": True}})
    plan = Plan.model_validate_json(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    volumes = {volume["name"]: volume for volume in dict(rendered.pods())["Deployment/ioa-gateway"]["volumes"]}
    assert plan.secrets[volumes["credentials"]["secret"]["secretName"]].seeds == {
        "seed": UserIdentity(user="gateway", role="gateway")
    }


def test_the_gateway_knows_the_names_by_which_it_is_reached() -> None:
    """By its Service from inside, and by its URL from outside, through an Ingress that keeps back no event."""
    rendered = render({"gateway": {**_INGRESS, "service": {"port": 8080}}})
    told = environment_of(rendered.one("Deployment", "ioa-gateway"))
    hosts = GatewaySettings(http_urls=told["IOA_HTTP_URLS"]).hosts(4280)
    [rule] = rendered.one("Ingress", "ioa-gateway")["spec"]["rules"]
    assert {"ioa-gateway:8080": "http", rule["host"]: "https"}.items() <= hosts.items()
    assert rendered.one("Ingress", "ioa-gateway")["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"


def test_only_who_is_named_reaches_the_gateway() -> None:
    """With peers of an Ingress controller nobody else connects."""
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]
    rules = render({"gateway": {"enabled": True, "from": peers}}).one("NetworkPolicy", "ioa-gateway")["spec"]["ingress"]
    assert [rule["from"] for rule in rules if {"port": "http", "protocol": "TCP"} in rule["ports"]] == [peers]


def test_an_ingress_without_a_host_is_refused() -> None:
    """Before anything is installed, with what to set."""
    with pytest.raises(RefusedError, match=r"set gateway\.publicUrl"):
        render({"gateway": {"enabled": True, "ingress": {"enabled": True}}})
