"""Environments as pure functions of their state, in JAX: stepped inside the compiled program that also learns.

`styles` and `choice` decide without JAX whether an environment is one; the other modules import it.
"""
