"""Lets programs and people in by HTTP: launch goals, follow them, look at groups and agents."""

from importlib.util import find_spec

from ioa.errors import MissingExtraError

if find_spec("fastapi") is None or find_spec("uvicorn") is None:
    raise MissingExtraError.of("The server for HTTP", "gateway")
