"""The planner's benchmark: the paper's sizes, large networks, re-planning, bounds, brokers among themselves."""
