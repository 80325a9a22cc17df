#!/bin/sh
# mmdebstrap's customize hook: makes of the Debian root $1 one that looks like a node of EL. dnf and
# rpm are its package managers, with rpm's database where EL has it and nothing in it.
set -eu
root=$1

mkdir -p "$root/etc/rpm" "$root/etc/dnf/vars" "$root/etc/yum.repos.d" "$root/etc/pki/rpm-gpg"
echo '%_dbpath /var/lib/rpm' >"$root/etc/rpm/macros"
rm -rf "$root"/root/.rpmdb "$root"/var/lib/rpm
chroot "$root" rpm --initdb
echo 9 >"$root/etc/dnf/vars/releasever"
# A plugin that EL does not install: it would keep a repository of what was downloaded.
rm -f "$root/etc/dnf/plugins/local.conf" "$root"/usr/lib/python3/dist-packages/dnf-plugins/local.py
# As on EL: a repository that fails is an error, and the best version counts.
sed -i -e '/^skip_if_unavailable/d' -e 's/^best=.*/best=True/' "$root/etc/dnf/dnf.conf"
chroot "$root" systemctl disable apt-daily.timer apt-daily-upgrade.timer
