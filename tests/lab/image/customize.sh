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

# The virtio NICs under the simulated ones have the PCI addresses that rails are matched by: they
# are named before anybody else's .link file is asked.
n=0
while read -r address; do
    printf '[Match]\nPath=pci-%s\nDriver=virtio_net\n\n[Link]\nName=under%s\n' "$address" "$n" \
        >"$root/etc/systemd/network/00-0-lab-under$n.link"
    n=$((n + 1))
done <"$root/usr/local/lib/railwright-lab/rails"

"$here/nic.sh" "$root" "$here/../nic"
"$here/kernel.sh" "$root"
"$here/held-package.sh" "$root"
chroot "$root" update-initramfs -u
echo 'grub-pc grub-pc/install_devices multiselect /dev/vda' | chroot "$root" debconf-set-selections
chroot "$root" systemctl enable systemd-networkd railwright-lab-identity railwright-lab-job
# lldpad sets DCB by itself: a test that wants it starts it.
chroot "$root" systemctl disable lldpad.service lldpad.socket
# Nothing waits for the network, no timer may take dpkg's lock in the middle of a test, and
# there is no LVM whose file systems could be scrubbed.
chroot "$root" systemctl disable systemd-networkd-wait-online \
    apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap
# /etc and /var are up to date with /usr: systemd need not run ldconfig and the like at boot.
touch "$root/etc/.updated" "$root/var/.updated"
