#!/bin/sh
# mmdebstrap's customize hook for the container's root, $1.
set -eu
root=$1
here=$(dirname "$0")
job=etc/systemd/system/railwright-lab-job.service

install -D -m 644 "$here/../lab/image/root/$job" "$root/$job"
"$here/../lab/image/held-package.sh" "$root"
chroot "$root" systemctl enable railwright-lab-job systemd-networkd
# There is no port that it could manage.
chroot "$root" systemctl disable opensm systemd-networkd-wait-online
# No timer may take dpkg's lock in the middle of a test.
chroot "$root" systemctl disable apt-daily.timer apt-daily-upgrade.timer
