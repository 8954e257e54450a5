"""Lets in third parties who show a token of the operator's identity provider."""
