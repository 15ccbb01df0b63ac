// The values of a few blocks, at most 16: every thread leaves its lanes of a block in shared memory, and all lanes of all
// blocks are joined at once at the end. ID tells the reductions of a kernel apart; `room` has 1024 values a block.
template <int ID, class R, int TEAM_SIZE, int PER, int GROUPS> struct fuse_few_blocks {
    using Acc = typename R::Acc;
    // Neighbouring lanes that one thread joins, and warps that have a block together.
    static constexpr int LANES = 8, WARPS = 1024 / LANES / 32;
    struct alignas(16) Lanes { Acc of[LANES]; };
    Acc* room;

    __device__ __forceinline__ fuse_few_blocks(void* room) : room((Acc*)room) {}

    __device__ __forceinline__ void* end(int blocks) const { return room + blocks * 1024; }

    __device__ __forceinline__ void put(int block, const fuse_lanes<R, TEAM_SIZE, PER, GROUPS>& lanes)
    {
        struct alignas(sizeof(Acc) * PER < 16 ? sizeof(Acc) * PER : 16) Some { Acc of[PER]; };
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) *(Some*)(room + block * 1024 + (g * TEAM_SIZE + threadIdx.x) * PER) = *(const Some*)lanes.lane[g];
    }

    // The value of all blocks, known to every thread.
    __device__ __forceinline__ Acc total(int count)
    {
        __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * 16 * WARPS];
        Acc* const warps = (Acc*)bytes;
        __syncthreads();
        for (int n = threadIdx.x; n < count * 32 * WARPS; n += TEAM_SIZE) {
            Lanes lanes = *(const Lanes*)(room + n * LANES);
#pragma unroll
            for (int s = 1; s < LANES; s *= 2)
#pragma unroll
                for (int k = 0; k + s < LANES; k += 2 * s) lanes.of[k] = R::join(lanes.of[k], lanes.of[k + s]);
            const Acc warp = fuse_over_lanes<R, 32>(lanes.of[0]);
            if (n % 32 == 0) warps[n / 32] = warp;
        }
        __syncthreads();
        // A lane for each block. Blocks that are not there are left out: even a neutral value may change a sign.
        const int lane = threadIdx.x % 32;
        Acc all = R::none();
        if (lane < count) {
            Acc of[WARPS];
#pragma unroll
            for (int k = 0; k < WARPS; ++k) of[k] = warps[lane * WARPS + k];
#pragma unroll
            for (int s = 1; s < WARPS; s *= 2)
#pragma unroll
                for (int k = 0; k + s < WARPS; k += 2 * s) of[k] = R::join(of[k], of[k + s]);
            all = of[0];
        }
        for (int s = 1; s < count; s *= 2) {
            const Acc other = fuse_shuffle(all, s);
            if ((lane ^ s) / s * s < count) all = R::join(all, other);
        }
        return fuse_from_first(all);
    }
};
