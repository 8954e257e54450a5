"""Client of a system: goals, groups and results for programs."""
