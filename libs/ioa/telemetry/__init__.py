"""What a process shows of itself: logs, metrics, health, and for tests the places where it can be made to die."""
