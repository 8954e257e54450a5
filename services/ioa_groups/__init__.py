"""Group setup: accepts goals, and decides the members, depth and deadline of each group."""
