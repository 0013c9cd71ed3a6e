"""`python -m gymnasium_solver` is `gsolve`."""

import sys

from gymnasium_solver.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
