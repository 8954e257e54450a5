"""What the gateway tells of its own accord: webhooks and traces of goals."""
