"""The containers of the molecule scenario ``default``: only persisted state is converged there."""

from railwright.site import inventory

GROUPS = {
    "roce": ["@podman/railwright-roce"],
    "infiniband": ["@podman/railwright-infiniband"],
}
HOSTS = {
    "@podman/railwright-infiniband": {
        "fabric": {"kind": "infiniband", "ipoib_mode": "datagram", "opensm": {}},
    },
}

globals().update(inventory(__file__, GROUPS, HOSTS))
