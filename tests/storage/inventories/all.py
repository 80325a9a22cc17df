"""All that the lab can mount for real, each on the client."""

from railwright.site import inventory
from tests.storage.site import (
    AUTHENTICATED,
    CLIENT,
    HOST_NQN,
    KEY_FILE,
    SERVER,
    hosts,
    scratch,
    server_address,
    volume,
)

ADDRESS = server_address()
KEY = {"host_key": {"file": str(KEY_FILE)}} if AUTHENTICATED else {}
MOUNTS = {
    "/mnt/rdma": volume("rdma", ADDRESS, filesystem="xfs", expected={"read_gb_s": 0.001}),
    "/mnt/tcp": volume("tcp", ADDRESS, **KEY),
    "/mnt/nfs": {"kind": "nfs", "server": ADDRESS, "export": "/srv/export", "version": "4.2"},
    "/scratch": scratch("0", "1"),
}

globals().update(
    inventory(
        __file__,
        {"nodes": [CLIENT, SERVER]},
        hosts(storage={"mounts": MOUNTS}, nvmeof={"host_nqn": HOST_NQN}),
    )
)
