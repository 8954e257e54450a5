"""Tasks of an agent: functions, leases, files and questions."""
