"""From a route to bytes: queues, policies, the in-flight window, and what one connection writes next."""
