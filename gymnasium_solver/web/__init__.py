"""The REST API and the page of `gsolve serve`."""
