"""A ring of brokers in the order of their identifiers, for where nobody can know everybody."""
