#if defined(HEAD_KEYS)
// Barriers in shared memory and copies to there that arrive at them, from Hopper on.
static __device__ __forceinline__ void fuse_barrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void fuse_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives once all that this thread has copied by fuse_copy is there.
static __device__ __forceinline__ void fuse_arrive_behind_copies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}

// Copies 16 bytes, or writes as many zeros.
static __device__ __forceinline__ void fuse_copy(unsigned to, const void* from, bool live)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(live ? 16 : 0) : "memory");
}

// Waits for all arrivals of a phase; phases are counted modulo 2.
static __device__ __forceinline__ void fuse_await(unsigned barrier, unsigned phase)
{
    unsigned over;
    do {
        asm volatile("{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\nselp.u32 %0, 1, 0, over;\n}"
                     : "=r"(over) : "r"(barrier), "r"(phase) : "memory");
    } while (!over);
}
#endif
