"""Auth callout: accepts connections by tokens of the operator's identity provider."""

from importlib.util import find_spec

from ioa.errors import MissingExtraError

if find_spec("jwt") is None:
    raise MissingExtraError.of("The library for tokens", "authcallout")
