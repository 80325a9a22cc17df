"""Stand-ins for the vendors' packages, and the signed repositories that they come from."""
