"""One schema of settings, and everything that reads it: loader, reference page, JSON Schema, effective view."""
