"""Files, pages, tickets and records of group setup."""
