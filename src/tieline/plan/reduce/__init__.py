"""Smaller instances with the same optimum: pendant trees cut off, chains contracted, blocks planned one by one."""
