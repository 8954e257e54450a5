"""Kubernetes' own schemas, strict: a field they do not know is an error, and so is a kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import kubernetes_validate
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.chart.rendering import Manifest

_TEXT = {"type": "string", "minLength": 1}
_WHOLE = {"type": "integer", "minimum": 0}


def _exactly(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = required | (optional or {})
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}


_ISSUER_REF = _exactly({"name": _TEXT}, {"kind": _TEXT, "group": _TEXT})

CUSTOM = {
    # As far as the chart uses them: https://keda.sh/docs/latest/reference/scaledobject-spec/ and the scalers' own pages.
    ("keda.sh/v1alpha1", "ScaledObject"): _exactly(
        {
            "scaleTargetRef": _exactly({"kind": {"const": "StatefulSet"}, "name": _TEXT}, {"apiVersion": _TEXT}),
            "minReplicaCount": _WHOLE,
            "maxReplicaCount": _WHOLE,
            "pollingInterval": _WHOLE,
            "cooldownPeriod": _WHOLE,
            "triggers": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "oneOf": [
                        _exactly(
                            {
                                "type": {"const": "nats-jetstream"},
                                "metadata": _exactly(
                                    {
                                        "natsServerMonitoringEndpoint": {"type": "string", "pattern": "^[^/:]+:[0-9]+$"},
                                        "account": _TEXT,
                                        "stream": _TEXT,
                                        "consumer": _TEXT,
                                        "lagThreshold": {"type": "string", "pattern": "^[1-9][0-9]*$"},
                                    },
                                    {"activationLagThreshold": {"type": "string"}, "useHttps": {"type": "string"}},
                                ),
                            }
                        ),
                        _exactly(
                            {
                                "type": {"const": "prometheus"},
                                "metadata": _exactly({"serverAddress": _TEXT, "query": _TEXT, "threshold": _TEXT}),
                            }
                        ),
                    ]
                },
            },
        },
        {"advanced": _exactly({"horizontalPodAutoscalerConfig": _exactly({"behavior": {"type": "object"}})})},
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): _exactly(
        {
            "selector": _exactly(
                {
                    "matchLabels": {"type": "object"},
                    "matchExpressions": {
                        "type": "array",
                        "items": _exactly(
                            {"key": _TEXT, "operator": {"const": "In"}, "values": {"type": "array", "minItems": 1, "items": _TEXT}}
                        ),
                    },
                }
            ),
            "podMetricsEndpoints": {
                "type": "array",
                "items": _exactly(
                    {
                        "port": _TEXT,
                        "path": _TEXT,
                        "interval": _TEXT,
                        "honorLabels": {"type": "boolean"},
                        "followRedirects": {"type": "boolean"},
                    },
                    {
                        "metricRelabelings": {
                            "type": "array",
                            "items": _exactly(
                                {"action": {"const": "keep"}, "sourceLabels": {"type": "array", "items": _TEXT}, "regex": _TEXT}
                            ),
                        }
                    },
                ),
            },
        },
        {
            "podTargetLabels": {"type": "array", "items": _TEXT},
            "bodySizeLimit": {"type": "string", "pattern": "^([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B$"},
            **dict.fromkeys(("sampleLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit"), _WHOLE),
        },
    ),
    ("cert-manager.io/v1", "Issuer"): {
        "oneOf": [_exactly({"selfSigned": _exactly({})}), _exactly({"ca": _exactly({"secretName": _TEXT})})]
    },
    ("cert-manager.io/v1", "Certificate"): _exactly(
        {
            "secretName": _TEXT,
            "issuerRef": _ISSUER_REF,
            "duration": _TEXT,
            "privateKey": _exactly({"algorithm": {"const": "ECDSA"}, "size": {"const": 256}}, {"rotationPolicy": _TEXT}),
        },
        {
            "isCA": {"type": "boolean"},
            "commonName": _TEXT,
            "dnsNames": {"type": "array", "minItems": 1, "items": _TEXT},
            "ipAddresses": {"type": "array", "minItems": 1, "items": _TEXT},
            "usages": {"type": "array", "items": _TEXT},
        },
    ),
}
"""The specifications of kinds that are not Kubernetes' own."""


def faults(manifest: Manifest, minor: str) -> list[str]:
    """Say what is wrong with a manifest by the schemas of a Kubernetes minor."""
    name = f"{manifest['kind']}/{manifest['metadata']['name']}"
    key = (manifest["apiVersion"], manifest["kind"])
    if key in CUSTOM:
        return [
            f"{name}: {error.json_path}: {error.message}"
            for error in Draft202012Validator(CUSTOM[key]).iter_errors(manifest["spec"])
        ]
    validator = _validator(*key, minor)
    if validator is None:
        return [f"{name}: Kubernetes {minor} knows no {key[1]} of {key[0]}"]
    return [f"{name}: {error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]


@cache
def _validator(api_version: str, kind: str, minor: str) -> Draft202012Validator | None:
    folder = f"kubernetes-json-schema/v{minor}.0-local-strict"
    group, _, version = api_version.rpartition("/")
    file = "-".join(part for part in (kind.lower(), group.partition(".")[0], version) if part)
    try:
        schema = kubernetes_validate.utils.schema_contents(f"{folder}/{file}.json", minor)
    except FileNotFoundError:
        return None
    return Draft202012Validator(schema, registry=_definitions(folder, minor))


@cache
def _definitions(folder: str, minor: str) -> Registry:
    contents = kubernetes_validate.utils.schema_contents(f"{folder}/_definitions.json", minor)
    registry: Registry = Resource.from_contents(contents) @ Registry()
    return registry
