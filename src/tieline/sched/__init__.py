"""Which message goes next, and which one dies when there is no room."""
