"""Take a goal apart into needs, by its text alone; `split_goal` is the one way in, but for what a single request lists."""
