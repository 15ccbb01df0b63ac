// Whether this block is the last of `blocks` to come here; what the others wrote before is visible to it. The counter is 0 again after.
static __device__ __forceinline__ bool fuse_last(unsigned* counter, unsigned blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// Reads what another block of this launch wrote, past the first-level cache.
template <class A> static __device__ __forceinline__ A fuse_fresh(const A* from)
{
    union Words {
        A value;
        unsigned word[(sizeof(A) + 3) / 4];
        __device__ __forceinline__ Words() : word{} {}
    } to;
    const unsigned* const words = (const unsigned*)from;
    if constexpr (sizeof(A) == 1) {
        asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=r"(to.word[0]) : "l"(from) : "memory");
    } else if constexpr (alignof(A) == 16) {
#pragma unroll
        for (int k = 0; k < (int)(sizeof(A) / 4); k += 4)
            asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to.word[k]), "=r"(to.word[k + 1]), "=r"(to.word[k + 2]), "=r"(to.word[k + 3]) : "l"(words + k) : "memory");
    } else {
#pragma unroll
        for (int k = 0; k < (int)(sizeof(A) / 4); ++k)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(to.word[k]) : "l"(words + k) : "memory");
    }
    return to.value;
}
