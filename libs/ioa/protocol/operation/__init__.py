"""Keys, webhooks, traces, audit lines, status and dead letters."""
