"""The group: its state, the events that move it, and the machine that decides. No I/O."""
