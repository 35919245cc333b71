"""The hot loops of the search, in the part of Python that numba compiles; without numba they run as they are.

They take tuples of arrays and plain numbers, because that is what numba passes without a cost; hence the long lists of
parameters.  A function whose name begins with an underscore can be called by other kernels only.
"""
