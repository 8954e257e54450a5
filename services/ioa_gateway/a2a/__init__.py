"""A2A 1.0 and 0.3: a task is a goal, and any replica serves any task. Imported by the first A2A request."""
