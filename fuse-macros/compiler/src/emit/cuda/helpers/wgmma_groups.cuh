// Products on their way: those between a beginning and an end are a group.
static __device__ __forceinline__ void fuse_wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void fuse_wgmma_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all but the last groups of products, after which `d` may be read.
template <int BUT, int N> static __device__ __forceinline__ void fuse_wgmma_await(float (&d)[N])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(BUT) : "memory");
#pragma unroll
    for (int n = 0; n < N; ++n) asm volatile("" : "+f"(d[n]) :: "memory");
}
