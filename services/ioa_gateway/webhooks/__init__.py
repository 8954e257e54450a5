"""Messages that the gateway sends by itself: webhooks, and traces of goals."""
