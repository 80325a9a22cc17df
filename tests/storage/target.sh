#!/bin/sh
# lab-target ADDRESS: the volumes and the export of a storage server, on its spare disks, as a
# target has them again after each boot. Made once: the file system of the export.
set -eu
address=$1
key=${2:-}
config=/sys/kernel/config/nvmet

until ip -4 -o address show | grep -qF " $address/"; do sleep 0.5; done
for module in nvmet nvmet_rdma nvmet_tcp; do modprobe "$module"; done

# subsystem NQN DEVICE UUID
subsystem() {
    mkdir -p "$config/subsystems/$1/namespaces/1"
    cd "$config/subsystems/$1"
    echo 1 >attr_allow_any_host
    [ "$(cat namespaces/1/enable)" = 0 ] || return 0
    printf %s "$2" >namespaces/1/device_path
    echo "$3" >namespaces/1/device_uuid
    echo 1 >namespaces/1/enable
}

# port NUMBER TRANSPORT NQN
port() {
    mkdir -p "$config/ports/$1"
    cd "$config/ports/$1"
    [ ! -e "subsystems/$3" ] || return 0
    echo "$2" >addr_trtype
    echo ipv4 >addr_adrfam
    echo "$address" >addr_traddr
    echo $((4419 + $1)) >addr_trsvcid
    ln -s "$config/subsystems/$3" "subsystems/$3"
}

subsystem nqn.2014-08.lab:rdma /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_gpu002s0 \
    11111111-1111-4111-8111-111111111111
subsystem nqn.2014-08.lab:tcp /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_gpu002s1 \
    22222222-2222-4222-8222-222222222222
if [ -n "$key" ]; then
    # The host of the volume over TCP has to prove who it is.
    cd "$config/subsystems/nqn.2014-08.lab:tcp"
    echo 0 >attr_allow_any_host
    host=$config/hosts/nqn.2014-08.lab:client
    mkdir -p "$host"
    cat "$key" >"$host/dhchap_key"
    [ -e "allowed_hosts/${host##*/}" ] || ln -s "$host" "allowed_hosts/${host##*/}"
fi
port 1 rdma nqn.2014-08.lab:rdma
port 2 tcp nqn.2014-08.lab:tcp

disk=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_gpu002s2
[ -n "$(blkid -p -s TYPE -o value "$disk")" ] || mkfs.ext4 -q -L lab-export "$disk"
mountpoint -q /srv/export || mount --mkdir "$disk" /srv/export
chmod 1777 /srv/export
modprobe rpcrdma
systemctl start nfs-server
