#!/bin/sh
# Stand-in of railwright's tests. pre_build.sh KERNEL SOURCES NAME VERSION: builds the modules, and
# leaves under /usr/src/ofa_kernel what others need to build upon them (headers, symbol versions),
# as the script of this name in mlnx-ofed-kernel does.
set -e
kernel=$1
sources=$2
make K_OBJ="$sources"
ofa_build_src="/usr/src/ofa_kernel/$(uname -m)/$kernel" ./ofed_scripts/dkms_ofed_post_build.sh
