// How rows come into the shared memory of a block that takes them in turn, in legs of so many points. Behind the last look at a
// leg of one row the same leg of the next row is sent for, so that memory is busy while the block computes.
static constexpr int fuse_leg = 8192;

#if __CUDA_ARCH__ >= 900
// One thread sends for a whole leg, and a barrier in shared memory counts its bytes. Such copies are of aligned 16 bytes: a
// row lies in its room as far behind an aligned place as it does in global memory, and at most 15 bytes beside it come along.
template <class T> struct fuse_room {
    T* shared;
    const T* next;
    int shift, next_shift;

    __device__ __forceinline__ fuse_room(void* shared) : shared((T*)shared), next(nullptr), shift(0), next_shift(0) {}

    __device__ __forceinline__ void* end(long long len) const { return shared + (len + 15) / 16 * 16 + 16 / sizeof(T); }

    // The row that is sent for from now on.
    __device__ __forceinline__ void aim(const T* row)
    {
        next_shift = (int)((unsigned long long)row % 16 / sizeof(T));
        next = row - next_shift;
    }

    // The row that was sent for becomes the one that is looked at.
    __device__ __forceinline__ void open() { shift = next_shift; }

    __device__ __forceinline__ const T* row() const { return shared + shift; }

    // The bytes of the leg from `base` on; the last one also has what the shift leaves over.
    __device__ __forceinline__ unsigned bytes(int base, int len) const
    {
        const int points = base + fuse_leg < len ? fuse_leg : len + next_shift - base;
        return (unsigned)(points * sizeof(T) + 15) / 16 * 16;
    }

    __device__ __forceinline__ void send(unsigned barrier, int base, int len) const
    {
        const unsigned to = (unsigned)__cvta_generic_to_shared(shared + base);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(to), "l"(next + base), "r"(bytes(base, len)), "r"(barrier) : "memory");
    }
};

template <int TEAM_SIZE, int PER> struct fuse_arrivals {
    static constexpr int LEGS = 262144 / fuse_leg;
    int len, released;
    unsigned parity;

    // Two barriers a leg, which take turns once a row: that it is there, and that every warp is done with it.
    static __device__ __forceinline__ unsigned barrier(int base, int which)
    {
        __shared__ unsigned long long of[2][LEGS];
        return (unsigned)__cvta_generic_to_shared(&of[which][base / fuse_leg]);
    }

    __device__ __forceinline__ fuse_arrivals(int len) : len(len), released(-1), parity(1)
    {
        for (int leg = threadIdx.x; leg < LEGS; leg += TEAM_SIZE) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(leg * fuse_leg, 0)) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier(leg * fuse_leg, 1)), "n"(TEAM_SIZE / 32) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        __syncthreads();
    }

    __device__ __forceinline__ void await(unsigned barrier) const
    {
        asm volatile("{ .reg .pred here; again: mbarrier.try_wait.parity.shared::cta.b64 here, [%0], %1; @!here bra again; }"
                     ::"r"(barrier), "r"(parity) : "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void send(int base, const Rooms&... rooms) const
    {
        const unsigned there = barrier(base, 0), bytes = (rooms.bytes(base, len) + ...);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(there), "r"(bytes) : "memory");
        (rooms.send(there, base, len), ...);
    }

    template <class... Rooms> __device__ __forceinline__ void send_all(const Rooms&... rooms) const
    {
        if (threadIdx.x == 0)
            for (int base = 0; base < len; base += fuse_leg) send(base, rooms...);
    }

    __device__ __forceinline__ void open() { parity ^= 1; }

    // Waits until a leg is there. Where the row is shifted, its last points came with the leg behind it.
    __device__ __forceinline__ void await_leg(int base, int) const
    {
        if (base == 0) await(barrier(0, 0));
        if (base + fuse_leg < len) await(barrier(base + fuse_leg, 0));
    }

    // Says that this warp is done with a leg. It is sent for once all are: so that nobody waits long, behind the next one.
    template <class... Rooms> __device__ __forceinline__ void release(int base, bool more, const Rooms&... rooms)
    {
        __syncwarp();
        if (!more || threadIdx.x % 32 != 0) return;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier(base, 1)) : "memory");
        flush(rooms...);
        released = base;
    }

    template <class... Rooms> __device__ __forceinline__ void flush(const Rooms&... rooms)
    {
        if (threadIdx.x != 0 || released < 0) return;
        await(barrier(released, 1));
        send(released, rooms...);
        released = -1;
    }
};
#elif __CUDA_ARCH__ >= 800
// Every thread sends for the points it reads itself, so that it need not wait for others.
template <class T> struct fuse_room {
    T* shared;
    const T* next;

    __device__ __forceinline__ fuse_room(void* shared) : shared((T*)shared), next(nullptr) {}
    __device__ __forceinline__ void* end(long long len) const { return shared + (len + 15) / 16 * 16 + 16 / sizeof(T); }
    __device__ __forceinline__ void aim(const T* row) { next = row; }
    __device__ __forceinline__ void open() {}
    __device__ __forceinline__ const T* row() const { return shared; }

    template <int PER> __device__ __forceinline__ void send(int e) const
    {
        const unsigned to = (unsigned)__cvta_generic_to_shared(shared + e);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(next + e), "n"(sizeof(T) * PER) : "memory");
    }
};

template <int TEAM_SIZE, int PER> struct fuse_arrivals {
    int len;

    __device__ __forceinline__ fuse_arrivals(int len) : len(len) {}
    __device__ __forceinline__ void open() {}

    template <class... Rooms> __device__ __forceinline__ void send(int base, const Rooms&... rooms) const
    {
#pragma unroll
        for (int k = 0; k < fuse_leg; k += TEAM_SIZE * PER) {
            const int e = base + k + threadIdx.x * PER;
            if (e < len) (rooms.template send<PER>(e), ...);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void send_all(const Rooms&... rooms) const
    {
        for (int base = 0; base < len; base += fuse_leg) send(base, rooms...);
    }

    // Waits until no more legs are on their way than come behind this one, of which so many are the next row's.
    __device__ __forceinline__ void await_leg(int base, int resent) const
    {
        const int behind = (len - 1 - base) / fuse_leg + resent;
        if (behind >= 4) asm volatile("cp.async.wait_group 4;" ::: "memory");
        else if (behind >= 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
        else if (behind == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void release(int base, bool more, const Rooms&... rooms) const
    {
        if (more) send(base, rooms...);
    }

    template <class... Rooms> __device__ __forceinline__ void flush(const Rooms&...) const {}
};
#endif
