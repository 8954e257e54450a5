"""Groups under a policy: who speaks when, and what leads on. Pure functions of the policy, the state and the event."""
