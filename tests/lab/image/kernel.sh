#!/bin/sh
# Puts a second kernel with its headers into the offline apt repository of the root $1: Debian's
# cloud flavour of the release that the node runs. GRUB boots it by default once it is installed,
# for its name sorts later, as that of a new release does.
set -eu
root=$1
repo=$root/srv/lab-repo
kernel=$(basename "$root"/lib/modules/*)
other=${kernel%-amd64}-cloud-amd64

mkdir -p "$repo"
chroot "$root" sh -c "cd /srv/lab-repo && apt-get download linux-image-$other linux-headers-$other"
for deb in "$repo"/linux-*.deb; do
    "${0%/*}/index.sh" "$root" "$(basename "$deb")"
done
echo "$other" >"$root/usr/local/lib/railwright-lab/other-kernel"
