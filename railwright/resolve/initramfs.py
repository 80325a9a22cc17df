"""Which modules an initramfs may load, and so must know the options of.

What an image does hold is not looked up: listing one takes a second or more, and one rebuild too
many harms nothing.
"""

_FOLDERS = tuple(
    f"kernel/{folder}/"
    for folder in (
        "crypto",
        "drivers/ata",
        "drivers/block",
        "drivers/firewire",
        "drivers/gpu",
        "drivers/hid",
        "drivers/hv",
        "drivers/infiniband",
        "drivers/input",
        "drivers/md",
        "drivers/message",
        "drivers/mmc",
        "drivers/net",
        "drivers/nvdimm",
        "drivers/nvme",
        "drivers/pci",
        "drivers/scsi",
        "drivers/ufs",
        "drivers/usb",
        "drivers/video",
        "drivers/virtio",
        "fs",
    )
)


def may_load(path: str) -> bool:
    """Whether an initramfs may load the module at ``path``, which is as in modules.dep.

    mkinitramfs (MODULES=most) and dracut take drivers of disks, file systems, networks, input
    and screens; of modules from outside the kernel's tree (DKMS, weak-updates) all are taken to
    be loaded there. Source: initramfs-tools' hook-functions, dracut's 90kernel-modules.
    """
    return not path.startswith("kernel/") or path.startswith(_FOLDERS)
