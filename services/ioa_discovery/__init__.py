"""Discovery: which agents fit a need."""
