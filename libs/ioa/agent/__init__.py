"""The agent client: what an author writes, and what takes the agent through its groups."""
