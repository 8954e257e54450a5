"""Group setup: who is in a group, how deep, how long."""
