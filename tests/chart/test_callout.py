"""Third parties by tokens: what the chart makes where that is wanted, and only there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ioa.hosting.cluster_credentials import Plan
from ioa.hosting.credentials import ASKED, ISSUER
from ioa.hosting.roster import AccessRole, Holder
from tests.chart.rendering import environment_of, render

pytestmark = pytest.mark.chart

_WANTED: Mapping[str, Any] = {"enabled": True, "issuer": "https://id.example.com:8443/ioa", "audience": "ioa"}
_GIVEN_CERTIFICATE: Mapping[str, Any] = {"tls": {"existingSecret": "t"}}


def test_the_callout_has_the_keys_that_the_job_makes() -> None:
    """What the Job is told to make, and may write, is what the pod mounts; it reads no password of NATS's routes."""
    rendered = render({"callout": _WANTED})
    plan = Plan.model_validate_json(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    pod = dict(rendered.pods())["Deployment/ioa-authcallout"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert plan.secrets[volumes["credentials"]["secret"]["secretName"]].seeds == {
        "seed": Holder(name="authcallout", role=AccessRole.SERVICE)
    }
    keys, authorization, _ = volumes["callout"]["projected"]["sources"]
    assert (keys["secret"]["name"], [one["key"] for one in keys["secret"]["items"]]) == (plan.callout, [ASKED, ISSUER])
    assert (authorization["secret"]["name"], [one["key"] for one in authorization["secret"]["items"]]) == (
        plan.authorization,
        ["roster.json"],
    )
    assert plan.callout in rendered.one("Role", "ioa-credentials")["rules"][1]["resourceNames"]
    told = environment_of(rendered.one("Deployment", "ioa-authcallout"))
    assert (told["IOA_CALLOUT_ISSUER"], told["IOA_CALLOUT_AUDIENCE"], "IOA_CALLOUT_JWKS" in told) == (
        _WANTED["issuer"],
        "ioa",
        False,
    )


def test_the_callout_reaches_its_issuer_unless_it_has_the_keys() -> None:
    """The port of the issuer is open to it, and not at all if the keys are given."""

    def ports(values: Mapping[str, Any]) -> set[int]:
        egress = render({"callout": values}).one("NetworkPolicy", "ioa-authcallout")["spec"]["egress"]
        return {port["port"] for rule in egress for port in rule["ports"]}

    assert (ports(_WANTED), ports({**_WANTED, "jwks": '{"keys": []}'})) == ({53, 4222, 8443}, {53, 4222})


def test_who_is_revoked_is_thrown_out_by_an_upgrade() -> None:
    """NATS's pods restart, which ends connections made by tokens, and so do the callout's, which read the list."""

    def annotations(revoked: list[str]) -> list[dict[str, str]]:
        rendered = render({**_GIVEN_CERTIFICATE, "callout": {**_WANTED, "revoked": revoked}})
        assert rendered.one("ConfigMap", "ioa-authcallout")["data"]["revoked"].split() == revoked
        found = (rendered.one("Deployment", "ioa-authcallout"), rendered.one("StatefulSet", "ioa-nats"))
        return [one["spec"]["template"]["metadata"]["annotations"] for one in found]

    before, after = annotations([]), annotations(["mallory@example.com", "eve@example.com"])
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False]
