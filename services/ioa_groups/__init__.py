"""Group setup: who is in a group, how deep it nests and how long it may take; and where goals come in."""
