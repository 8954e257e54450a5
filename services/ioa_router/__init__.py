"""The router: checks, orders and delivers the messages of groups."""
