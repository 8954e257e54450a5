"""Requests and replies: services, their endpoints and callers."""
