"""The clients of Lustre and BeeGFS, which are stand-ins, with a secret."""

from railwright.site import inventory
from tests.lab.layout import HOST_SEEN_FROM_NODE, layout
from tests.storage.asked import beegfs, beegfs_mount, lustre, lustre_mount, repositories
from tests.storage.site import CLIENT, DISTRO, SECRET_FILE, SERVER, hosts, server_address

ADDRESS = server_address()
URL = f"http://{HOST_SEEN_FROM_NODE}:{layout(DISTRO).mirror_port}"

globals().update(
    inventory(
        __file__,
        {"nodes": [CLIENT, SERVER]},
        hosts(
            ofed={"kind": "inbox"},
            repositories=repositories(URL, "lustre", "beegfs"),
            lustre=lustre(),
            beegfs=beegfs(8, "dkms"),
            storage={
                "mounts": {
                    "/mnt/lustre": lustre_mount(ADDRESS, timeout_s=300),
                    "/mnt/beegfs": beegfs_mount(
                        ADDRESS, auth={"file": str(SECRET_FILE)}, timeout_s=300
                    ),
                }
            },
        ),
    )
)
