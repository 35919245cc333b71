"""HTTP beside the broker: metrics, health, readiness; an extra of its own."""
