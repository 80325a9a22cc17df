# Stand-in of railwright's tests for beegfs-client-build.mk: what the module is built against.
#
# Headers of OFED, where its modules are in use:
#OFED_INCLUDE_PATH=/usr/src/ofa_kernel/default/include
#
# Sources of GPUDirect Storage:
#NVFS_INCLUDE_PATH=/usr/src/nvidia-fs-2.13.5
#NVIDIA_INCLUDE_PATH=/usr/src/nvidia-520.61.05/nvidia
