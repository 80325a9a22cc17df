"""apt-get where nobody is there to answer it."""

APT_INSTALL = (
    *("env", "DEBIAN_FRONTEND=noninteractive"),
    # Ubuntu's hook would restart other services after the installation.
    "NEEDRESTART_SUSPEND=1",
    *("apt-get", "install", "-qq", "-y", "-o", "Dpkg::Use-Pty=0"),
)
"""The command that the names of packages follow; it asks nothing."""
