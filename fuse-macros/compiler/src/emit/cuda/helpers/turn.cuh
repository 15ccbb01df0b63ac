// What eight warps have of a tile of SIZE columns after their products, 16 rows each: of every 8 columns a thread has two
// neighbours, in each of two rows. So memory is met in small pieces; turned in shared memory, 32 columns at a time, a thread
// has VEC neighbours of a row, and a warp whole rows.
template <int SIZE> struct fuse_turn {
    static constexpr int PIECES = SIZE / 32, ACCESSES = 16 / VEC;
    // Eight more columns than are used keep rows in different banks.
    struct alignas(16) Shared { float of[8][16][40]; };
    float (&of)[16][40];

    __device__ __forceinline__ fuse_turn(Shared& shared) : of(shared.of[threadIdx.x / 32 - 4]) {}

    // Where an access is in the tile, from its piece on.
    static __device__ __forceinline__ int row(int access)
    {
        return (threadIdx.x / 32 - 4) * 16 + access % ACCESSES * VEC + threadIdx.x % 32 / (32 / VEC);
    }
    static __device__ __forceinline__ int column(int access)
    {
        return access / ACCESSES * 32 + threadIdx.x % (32 / VEC) * VEC;
    }

    // Which registers a piece is in is known where it is compared with each.
    __device__ __forceinline__ void put(const float (&product)[SIZE / 2], int piece)
    {
        const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
        __syncwarp();
#pragma unroll
        for (int n = 0; n < PIECES; ++n) {
            if (n != piece) continue;
#pragma unroll
            for (int j = 0; j < 8; ++j)
                *(float2*)&of[row + j % 2 * 8][column + j / 2 * 8] = make_float2(product[n * 16 + j * 2], product[n * 16 + j * 2 + 1]);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void get(float (&to)[VEC], int access) const
    {
        const float* from = &of[access % ACCESSES * VEC + threadIdx.x % 32 / (32 / VEC)][threadIdx.x % (32 / VEC) * VEC];
        fuse_pack<float, VEC> pack;
        pack.load(from);
#pragma unroll
        for (int v = 0; v < VEC; ++v) to[v] = pack[v];
    }

    // All accesses to a piece of each of N products, which have as many columns.
    template <int N> __device__ __forceinline__ void all(float (&to)[N][ACCESSES][VEC], const float (&product)[SIZE / 2], int piece)
    {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            put(product, piece + n * (PIECES / N));
#pragma unroll
            for (int access = 0; access < ACCESSES; ++access) get(to[n][access], access);
        }
    }
};
