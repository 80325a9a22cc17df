#!/bin/sh
# Leaves the root $1 with one apt source that works offline, /srv/lab-repo. It holds an empty
# package in two versions, the stand-in for a driver library; the older one is installed.
set -eu
umask 022
root=$1
repo=$root/srv/lab-repo
mkdir -p "$repo"

for version in 1.0 1.1; do
    package=$(mktemp -d)
    chmod 755 "$package"
    mkdir "$package/DEBIAN"
    cat >"$package/DEBIAN/control" <<END
Package: railwright-lab-held
Version: $version
Architecture: all
Maintainer: railwright <railwright@localhost>
Description: empty stand-in for a driver library that must stay at its version
END
    deb=railwright-lab-held_${version}_all.deb
    dpkg-deb --root-owner-group --build "$package" "$repo/$deb" >/dev/null
    rm -r "$package"
    "${0%/*}/index.sh" "$root" "$deb"
done

rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/srv/lab-repo ./' >"$root/etc/apt/sources.list.d/lab.list"
chroot "$root" apt-get update
chroot "$root" apt-get install --yes railwright-lab-held=1.0
