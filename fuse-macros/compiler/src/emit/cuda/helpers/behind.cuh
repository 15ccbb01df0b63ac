// A kernel may be started while the one before it still runs: it waits here until all of that is done and seen, so
// nothing may come before. One with so few blocks that all of them run at a time lets the next be started at once.
static __device__ __forceinline__ void fuse_behind()
{
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 264) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
