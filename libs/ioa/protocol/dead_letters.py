"""Reasons of dead letters: messages that could not be processed."""

from __future__ import annotations

from enum import StrEnum


class DeadReason(StrEnum):
    """Reason of a dead letter."""

    UNREADABLE = "unreadable"
    """The message is not a goal, or refers to a missing file."""
    TOO_LARGE = "too_large"
    CONFLICT = "conflict"
    """The goal's id belongs to another goal."""
    ENDED = "ended"
    """The goal ended, and all but its outcome was removed."""
    FAILED = "failed"
    """The system failed to accept the goal."""
    UNDELIVERABLE = "undeliverable"
    """The work on the message failed repeatedly, or its kind is unknown."""
    UNREADABLE_ENTRY = "unreadable_entry"
    """A copy of an unreadable entry of a group's log; the group cannot continue."""
    WEBHOOK = "webhook"
    """A notice that its webhook did not accept within a day."""
