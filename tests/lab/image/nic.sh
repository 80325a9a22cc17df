#!/bin/sh
# Builds the simulated NIC, whose source is in $2, for the kernel of the root $1.
set -eu
root=$1
source=$2
kernel=$(basename "$root"/lib/modules/*)

cp -RT "$source" "$root/railsim"
chroot "$root" make -C /railsim KVER="$kernel"
chroot "$root" strip --strip-debug /railsim/railsim.ko

mkdir -p "$root/lib/modules/$kernel/extra"
cp --no-preserve=ownership "$root/railsim/railsim.ko" "$root/lib/modules/$kernel/extra"
rm -r "$root/railsim"
chroot "$root" depmod "$kernel"
