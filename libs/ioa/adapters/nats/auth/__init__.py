"""Authentication and authorisation: roles, rendered server configuration, tokens, and the identity of a connection."""
