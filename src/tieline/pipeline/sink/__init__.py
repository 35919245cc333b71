"""Results of Spark jobs, back to MQTT."""
