"""An example of a production site: 128 HGX nodes on RoCE, 32 on InfiniBand."""

from railwright.site import inventory

GROUPS = {
    "hgx_h100": "gpu[001-160]",
    "roce": "gpu[001-128]",
    "infiniband": "gpu[129-160]",
    "canary": "gpu[001-002,129]",
}

HOSTS = {
    "gpu[001-160]": {"ssh": {"user": "root"}},
    # Canaries are drained first, so they may be rebooted.
    "gpu[001-002,129]": {"effects": {"allow": ["live", "new_processes", "service", "reboot"]}},
}

globals().update(inventory(__file__, GROUPS, HOSTS))
