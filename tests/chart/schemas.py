"""Kubernetes' own schemas, strict: an unknown field or kind is an error."""

from __future__ import annotations

from functools import cache

import kubernetes_validate
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.chart.rendering import CUSTOM_KINDS, Manifest

_CUSTOM_GROUPS = tuple(kind.partition("/")[0] for kind in CUSTOM_KINDS)
"""Their schemas are not part of Kubernetes; the golden manifests show what the chart uses of them."""


def faults(manifest: Manifest, minor: str) -> list[str]:
    """Say what is wrong with a manifest by the schemas of a Kubernetes minor."""
    name = f"{manifest['kind']}/{manifest['metadata']['name']}"
    if manifest["apiVersion"].startswith(_CUSTOM_GROUPS):
        return []
    validator = _validator(manifest["apiVersion"], manifest["kind"], minor)
    if validator is None:
        return [f"{name}: Kubernetes {minor} has no {manifest['kind']} of {manifest['apiVersion']}"]
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
