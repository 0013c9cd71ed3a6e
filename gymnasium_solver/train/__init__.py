"""The only joint of environment, algorithm and run files. Importing it sets JAX up before anything else imports it."""

from gymnasium_solver.train.backend import configure

configure()
