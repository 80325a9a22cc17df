#!/bin/sh
# Puts what clients and servers of storage need into the offline apt repository of the root $1:
# a node has none of it until it is asked for.
set -eu
root=$1
repo=$root/srv/lab-repo

mkdir -p "$repo"
rm -f "$root"/var/cache/apt/archives/*.deb
chroot "$root" apt-get install --yes --no-install-recommends --download-only \
    fio mdadm nfs-common nfs-kernel-server nvme-cli xfsprogs
for deb in "$root"/var/cache/apt/archives/*.deb; do
    name=$(basename "$deb" | sed 's/%3a/:/; s/^\([^_]*\)_[0-9]*:/\1_/')
    mv "$deb" "$repo/$name"
    "${0%/*}/index.sh" "$root" "$name"
done
