"""A2A 1.0 and 0.3 on the log: a task is a goal, and any replica tells where it stands. Imported by the first request for it."""
