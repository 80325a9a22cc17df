"""The container of the molecule scenario ``default``: only persisted state is converged there."""

from railwright.site import inventory

GROUPS = {"roce": ["@podman/railwright-default"]}

globals().update(inventory(__file__, GROUPS))
