"""Fakes and test environments that ship to users."""
