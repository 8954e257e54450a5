"""What programs ask of a system, and what they make of its answers."""
