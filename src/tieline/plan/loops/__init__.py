"""The hot loops of the search, in the part of Python that numba compiles; without numba they run as they are."""
