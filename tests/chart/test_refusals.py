"""What cannot work is refused before anything is installed, with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ioa.adapters.nats.auth.roles import OURS, Service
from tests.chart.rendering import CHART, RefusedError, render

pytestmark = pytest.mark.chart

_POOL = {"name": "a", "target": "a.py:a"}
_ACME: dict[str, Any] = {"name": "acme", "storeBytes": 10**9, "agentPools": [_POOL]}


def _people(*names: str) -> Mapping[str, Any]:
    return {"credentials": {"users": [{"name": name, "role": "user"} for name in names]}}


def _tenants(*tenants: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"tenants": tenants}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replicas": 1}, "Additional property replicas is not allowed"),
        ({"agentPools": [_POOL | {"replica": 1}]}, "agentPools.0: Additional property replica is not allowed"),
        ({"agentPools": [{"target": "a.py:a"}]}, "agentPools.0: name is required"),
        ({"agentPools": [_POOL | {"name": "No_Such"}]}, "agentPools.0.name: Does not match pattern"),
        ({"nats": {"replicas": 2}}, "nats.replicas must be one of the following: 1, 3"),
        ({"logLevel": "loud"}, "logLevel must be one of the following"),
    ],
)
def test_a_typo_is_refused(values: Mapping[str, Any], complaint: str) -> None:
    """The schema knows every value."""
    assert complaint in _refusal(values)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"agentPools": [_POOL, _POOL]}, 'Two of the components are called "a".'),
        ({"agentPools": [_POOL | {"name": "nats"}]}, 'An agent pool may not be called "nats"'),
        ({"agentPools": [_POOL | {"name": "user"}]}, 'The user "user" bears the name of a component or of another user.'),
        (_people("user", "authcallout"), 'The user "authcallout" bears the name of a component or of another user.'),
        (_people("user", "anna", "anna"), 'The user "anna" bears the name of a component or of another user.'),
        ({"agentPools": [_POOL, _POOL | {"name": "a-1"}]}, '"a-1" is the name of an agent of the pool "a".'),
        (_tenants(_ACME | {"users": [{"name": "a-12", "role": "user"}]}), '"a-12" is the name of an agent of the pool "a".'),
        (_tenants(_ACME, _ACME), 'Two tenants are called "acme".'),
        (_tenants(_ACME | {"users": [{"name": "router", "role": "user"}]}), "bears the name of a component"),
        (_tenants(_ACME | {"name": "Acme"}), "tenants.0.name"),
        (_tenants({"name": "acme"}), "storeBytes"),
        (
            {"gateway": {"enabled": True, "seats": ["anna"]}, **_people("user", "human-anna")},
            'The user "human-anna" bears the name of a component or of another user.',
        ),
        (
            {"gateway": {"enabled": True, "seats": ["7"]}, "agentPools": [_POOL | {"name": "human"}]},
            'has an agent "human-7", which is a person\'s seat',
        ),
        ({"gateway": {"enabled": True, "ingress": {"enabled": True}}}, "set gateway.publicUrl"),
        ({"agentPools": [{"name": "a"}]}, 'The pool "a" needs a target (FILE.py:ATTR or MODULE:ATTR) or a command.'),
        ({"agentPools": [_POOL | {"autoscaling": {"enabled": True, "maxReplicas": 11}}]}, 'The pool "a" may have 11 replicas'),
        (
            {"agentPools": [_POOL | {"maxReplicas": 801}]},
            "The pools may have 801 agents together, but the authorization of more than 800",
        ),
        (
            {"agentPools": [_POOL | {"maxReplicas": 251}]},
            "The pools may have 251 agents together, but agents have 250 connections: those beyond would be refused.",
        ),
        (
            {"agentPools": [_POOL | {"autoscaling": {"enabled": True, "minReplicas": 5}}]},
            'The pool "a" cannot have more replicas at least (5) than at most (4).',
        ),
        (
            {
                "agentPools": [_POOL | {"autoscaling": {"enabled": True}}],
                "nats": {"externalUrl": "nats://n:4222"},
            },
            'The pool "a" scales by KEDA, which asks NATS\'s monitoring port.',
        ),
        (
            {"agentPools": [_POOL | {"autoscaling": {"enabled": True}}], "networkPolicy": {"keda": []}},
            "Set networkPolicy.keda to the pods of KEDA.",
        ),
        ({"agentPools": [_POOL | {"model": {"baseUrl": "https://m"}}]}, "model.name is missing"),
        ({"fullnameOverride": "x" * 40, "agentPools": [_POOL | {"name": "y" * 20}]}, "is longer than 52 characters"),
        ({"credentials": {"create": False}}, "so the authorization of NATS is not created."),
        (
            {"credentials": {"create": False, "authorization": {"existingSecret": "a"}, "existingSecrets": {"registry": "r"}}},
            "has no credentials. Name a Secret with them: credentials.existingSecrets.",
        ),
        ({"credentials": {"users": [{"name": "a", "role": "admin"}]}}, "The first of credentials.users publishes the goal"),
    ],
)
def test_what_contradicts_itself_is_refused(values: Mapping[str, Any], complaint: str) -> None:
    """With a sentence that says what to do."""
    assert complaint in _refusal(values)


@pytest.mark.parametrize("name", sorted(OURS - set(Service)))
def test_no_user_is_called_as_the_system_calls_its_own(name: str) -> None:
    """In no tenant either: its name would let the user act for others. An admin may be called so."""
    users = [{"name": name, "role": "user"}]
    for values in (_tenants(_ACME | {"users": users}), {"credentials": {"users": users}}):
        assert f'The user "{name}" is called as the system calls those of its own' in _refusal(values)
    assert render(_tenants(_ACME | {"users": [{"name": name, "role": "admin"}]})).manifests


@pytest.mark.parametrize(
    ("file", "missing"),
    [
        ("keda", "keda.sh/v1alpha1/ScaledObject"),
        ("tls-issuer", "cert-manager.io/v1/Certificate"),
        ("everything", "monitoring.coreos.com/v1/PodMonitor"),
    ],
)
def test_what_the_cluster_lacks_is_told_early(file: str, missing: str) -> None:
    """One object of a kind that the cluster does not know would fail a whole upgrade half-way."""
    with pytest.raises(RefusedError) as caught:
        render(CHART / "ci" / f"{file}.yaml", custom_kinds=())

    assert f"pass --api-versions {missing}" in str(caught.value)


def _refusal(values: Mapping[str, Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        render(values)
    return str(caught.value)
