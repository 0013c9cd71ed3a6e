"""What a file names is data until somebody allows it: the one gate to code, and text of runs made fit to be read."""

from gymnasium_solver.trust.gate import (
    ALLOWED,
    allow,
    allow_everything,
    allowed_by_variable,
    allowed_for_children,
    ask_with,
    close,
    closed,
    factory,
    is_closed,
    load,
    load_file,
    load_from_variable,
    load_module,
    may_import,
    refusal,
    require,
)
from gymnasium_solver.trust.names import names_in, written
from gymnasium_solver.trust.origin import admit, signature
from gymnasium_solver.trust.text import clean, clean_rendered, escaped

__all__ = [
    "ALLOWED",
    "admit",
    "allow",
    "allow_everything",
    "allowed_by_variable",
    "allowed_for_children",
    "ask_with",
    "clean",
    "clean_rendered",
    "close",
    "closed",
    "escaped",
    "factory",
    "is_closed",
    "load",
    "load_file",
    "load_from_variable",
    "load_module",
    "may_import",
    "names_in",
    "refusal",
    "require",
    "signature",
    "written",
]
