"""The checker of the policy language, and stored teams."""
