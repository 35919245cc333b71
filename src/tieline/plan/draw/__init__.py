"""Pictures of networks and plans: where nodes stand, where labels fit, what carries how much."""
