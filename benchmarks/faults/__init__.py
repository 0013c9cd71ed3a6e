"""Planted faults: training runs that are known to be broken, or known not to be, and what diagnosis makes of them."""
