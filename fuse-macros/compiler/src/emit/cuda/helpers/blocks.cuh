// The values of blocks, joined without a barrier a block: every warp leaves its part of a block in shared memory, and all
// threads join what is there now and then and at the end. ID tells the reductions of a kernel apart.
template <int ID, class R, int TEAM_SIZE, int PER, int GROUPS> struct fuse_blocks {
    using Acc = typename R::Acc;
    static constexpr int PENDING = 16, WARPS = TEAM_SIZE / 32, PARTS = GROUPS * WARPS;
    fuse_tree<R> tree;
    int pending;

    __device__ __forceinline__ fuse_blocks(long long len) : tree(len), pending(0) {}

    __device__ __forceinline__ Acc* parts(int block)
    {
        __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * PENDING * PARTS];
        return (Acc*)bytes + block * PARTS;
    }

    __device__ __forceinline__ void push(fuse_lanes<R, TEAM_SIZE, PER, GROUPS>& lanes)
    {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            lanes.fold(g);
            const Acc warp = fuse_over_lanes<R, 32>(lanes.lane[g][0]);
            if (threadIdx.x % 32 == 0) parts(pending)[g * WARPS + threadIdx.x / 32] = warp;
        }
        ++pending;
        if (pending == PENDING) join();
    }

    __device__ __forceinline__ Acc value(int block) { return fuse_over_lanes<R, PARTS>(parts(block)[threadIdx.x % PARTS]); }

    __device__ __forceinline__ void join()
    {
        __syncthreads();
        for (int block = 0; block < pending; ++block) tree.push(value(block));
        __syncthreads();
        pending = 0;
    }

    // The value of all blocks, known to every thread.
    __device__ __forceinline__ Acc total()
    {
        join();
        return tree.total();
    }
};
