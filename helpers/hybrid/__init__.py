"""Several parallel axes at once: the grid of ranks, pipeline schedules, traffic, a planner."""
