#!/bin/sh
# Stand-in of railwright's tests. Copies headers and Module.symvers of the build to $ofa_build_src,
# and makes it a choice of the alternative that /usr/src/ofa_kernel/default is, as the script of
# this name in mlnx-ofed-kernel does.
set -e
: "${ofa_build_src:?}"
link=/usr/src/ofa_kernel/default

rm -rf "$ofa_build_src"
mkdir -p "$ofa_build_src"
cp -a include Module.symvers "$ofa_build_src"
if [ -L "$link" ] && ! update-alternatives --list ofa_kernel_headers >/dev/null 2>&1; then
    rm -f "$link"
fi
# 17 marks the choices that are made here: the package's prerm takes those away.
update-alternatives --install "$link" ofa_kernel_headers "$ofa_build_src" 17
