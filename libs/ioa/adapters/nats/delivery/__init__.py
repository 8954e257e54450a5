"""Messages to members, work queues, timers and the shared clock."""
