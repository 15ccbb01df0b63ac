// The address of something in shared memory, as instructions take it.
static __device__ __forceinline__ unsigned fuse_shared_at(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

// STAGES pieces of shared memory that go round between threads that fill them and threads that use them.
// See "mbarrier" in the PTX ISA: a barrier's phase is over when so many threads have arrived.
template <int STAGES> struct fuse_ring {
    unsigned long long full[STAGES], empty[STAGES];

    // By one thread, before a barrier of the block.
    __device__ __forceinline__ void open(unsigned fillers, unsigned users)
    {
        for (int stage = 0; stage < STAGES; ++stage) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(fuse_shared_at(full + stage)), "r"(fillers) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(fuse_shared_at(empty + stage)), "r"(users) : "memory");
        }
    }

    static __device__ __forceinline__ void arrive(unsigned long long& barrier)
    {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(fuse_shared_at(&barrier)) : "memory");
    }

    // Arrives when the copies of this thread so far are done.
    static __device__ __forceinline__ void arrive_behind_copies(unsigned long long& barrier)
    {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(fuse_shared_at(&barrier)) : "memory");
    }

    // Until the phase of this parity is over.
    static __device__ __forceinline__ void await(unsigned long long& barrier, unsigned parity)
    {
        asm volatile("{\n.reg .pred over;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra AGAIN_%=;\n}"
                     :: "r"(fuse_shared_at(&barrier)), "r"(parity) : "memory");
    }
};

// Where a thread is on its way round a ring.
template <int STAGES> struct fuse_lap {
    unsigned stage = 0, parity = 0;

    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};
