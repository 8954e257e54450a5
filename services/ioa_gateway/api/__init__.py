"""What the gateway answers: each function takes a call, asks the system, and describes the answer."""
