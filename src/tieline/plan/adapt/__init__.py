"""Plans that follow the network: changes, and re-planning that moves as few flows as possible."""
