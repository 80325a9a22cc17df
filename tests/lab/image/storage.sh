#!/bin/sh
# mmdebstrap's customize hook of the image of kind storage, after customize.sh: $1 is the new root.
set -eu
root=$1

# Started by the server's own unit, once the kernel has NFS over RDMA: nfsd listens then on what
# there is when it starts.
chroot "$root" systemctl disable nfs-server
# A QP's packets count as those of the unit that made its device. udev's may reach no address
# (IPAddressDeny=any), so that the kernel drops what the connection manager sends (-EPERM).
sed -i 's|exec rdma|exec systemd-run -q --collect rdma|' \
    "$root/usr/local/lib/railwright-lab/rdma-device"
