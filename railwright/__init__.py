"""Typed, idempotent configuration of bare-metal GPU hosts."""

from importlib.metadata import version

__version__ = version("railwright")
