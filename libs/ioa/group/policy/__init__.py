"""Groups under a policy: the order of speakers, and the exits of nodes. Pure functions of the policy, the state and the event."""
