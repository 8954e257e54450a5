"""MCP by HTTP: a few constant tools that start goals and wait for them. Imported by the first request for it."""
