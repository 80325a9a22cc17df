#!/bin/sh
# Builds the simulated NIC, whose source is in $2, for the kernel of the root $1. The compiler and
# the kernel's headers are installed in an overlay of the root and are gone with it.
set -eu
root=$1
source=$2
kernel=$(basename "$root"/lib/modules/*)

work=$(mktemp -d)
mount -t tmpfs -o size=2G railwright-lab-nic "$work"
# Lazily, as nothing that is left in there is wanted.
trap 'umount --lazy "$work/root" "$work"; rmdir "$work"' EXIT
mkdir "$work/upper" "$work/work" "$work/root"
(cd "$root" && mount -t overlay -o "lowerdir=.,upperdir=$work/upper,workdir=$work/work" \
    railwright-lab-nic "$work/root")

chroot "$work/root" apt-get install --yes --no-install-recommends make "linux-headers-$kernel"
cp -RT "$source" "$work/root/railsim"
chroot "$work/root" make -C /railsim KVER="$kernel"
chroot "$work/root" strip --strip-debug /railsim/railsim.ko

mkdir -p "$root/lib/modules/$kernel/extra"
cp --no-preserve=ownership "$work/root/railsim/railsim.ko" "$root/lib/modules/$kernel/extra"
chroot "$root" depmod "$kernel"
