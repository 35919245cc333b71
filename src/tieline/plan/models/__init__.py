"""The paper's formulations and ours as mixed-integer programs on HiGHS, one function per constraint."""
