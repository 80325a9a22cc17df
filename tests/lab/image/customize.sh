#!/bin/sh
# mmdebstrap's customize hook: $1 is the new root. Files of image/root are put in place,
# the offline apt repository is made, and services are enabled.
set -eu
umask 022
root=$1
here=$(dirname "$0")

cp -RT --no-preserve=ownership,timestamps "$here/root" "$root"
chmod -R u=rwX,go=rX "$root/usr/local/lib/railwright-lab"
rm -f "$root"/etc/ssh/ssh_host_*

# A held package in two versions stands in for a driver library.
repo=$root/srv/lab-repo
mkdir -p "$repo"
for version in 1.0 1.1; do
    package=$(mktemp -d)
    chmod 755 "$package"
    mkdir "$package/DEBIAN"
    cat >"$package/DEBIAN/control" <<EOF
Package: railwright-lab-held
Version: $version
Architecture: all
Maintainer: railwright <railwright@localhost>
Section: misc
Priority: optional
Description: empty stand-in for a driver library that must stay at its version
EOF
    deb=railwright-lab-held_${version}_all.deb
    dpkg-deb --root-owner-group --build "$package" "$repo/$deb" >/dev/null
    rm -r "$package"
    {
        dpkg-deb --field "$repo/$deb"
        echo "Filename: ./$deb"
        echo "Size: $(stat -c %s "$repo/$deb")"
        echo "SHA256: $(sha256sum "$repo/$deb" | cut -d' ' -f1)"
        echo
    } >>"$repo/Packages"
done

# From here on apt knows that repository alone.
find "$root/etc/apt/sources.list.d" -type f ! -name lab.list -delete
: >"$root/etc/apt/sources.list"
rm -rf "$root"/var/lib/apt/lists/*
chroot "$root" apt-get update
chroot "$root" apt-get install --yes railwright-lab-held=1.0

chroot "$root" update-initramfs -u
echo 'grub-pc grub-pc/install_devices multiselect /dev/vda' | chroot "$root" debconf-set-selections
chroot "$root" systemctl enable systemd-networkd railwright-lab-identity railwright-lab-job
# Nothing waits for the network, no timer may take dpkg's lock in the middle of a test, and
# there is no LVM whose file systems could be scrubbed.
chroot "$root" systemctl disable systemd-networkd-wait-online \
    apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap
# /etc and /var are up to date with /usr: systemd need not run ldconfig and the like at boot.
touch "$root/etc/.updated" "$root/var/.updated"
