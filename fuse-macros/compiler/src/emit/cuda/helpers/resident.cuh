// A copy from global to shared memory that goes on behind the thread (compute capability 8.0 and up): BYTES are 4, 8 or 16.
template <int BYTES> static __device__ __forceinline__ void fuse_fetch(void* to, const void* from)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(BYTES) : "memory");
}

// Ends a group of copies.
static __device__ __forceinline__ void fuse_end_fetches() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until no more than `behind` of this thread's last groups are on their way.
static __device__ __forceinline__ void fuse_await_fetches(int behind)
{
    if (behind >= 3) asm volatile("cp.async.wait_group 3;" ::: "memory");
    else if (behind == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else if (behind == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 0;" ::: "memory");
}
