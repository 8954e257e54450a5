"""What every service is made of: settings, connection, endpoints, logs, shutdown."""
