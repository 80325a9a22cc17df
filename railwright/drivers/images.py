"""Initramfs images are made anew by the tool of their distribution, which their path tells."""

from railwright.actions import Run


def make_image(path: str, kernel: str) -> Run:
    """The command that makes the image at ``path`` anew: initramfs-tools', or dracut's."""
    if path.startswith("/boot/initrd.img-"):
        return Run(command=("update-initramfs", "-u", "-k", kernel))
    return Run(command=("dracut", "--force", path, kernel))


def first_image(path: str, kernel: str) -> Run:
    """The command that makes the image at ``path`` where there is none."""
    if path.startswith("/boot/initrd.img-"):
        return Run(command=("update-initramfs", "-c", "-k", kernel))
    return make_image(path, kernel)
