"""The MCP server `gymnasium-solver`: the verbs of `gsolve` as tools for an assistant."""
