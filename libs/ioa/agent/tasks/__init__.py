"""Tasks of one agent: functions, leases, files and questions."""
