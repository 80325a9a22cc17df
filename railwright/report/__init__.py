"""Reports on a fleet, in the three forms of ``--format``."""
