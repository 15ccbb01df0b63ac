#if __CUDA_ARCH__ >= 800
// What tensor cores multiply, of elements that are halves.
template <class T, int N> static __device__ __forceinline__ const fuse_pack<T, N>& fuse_as_halves(const fuse_pack<T, N>& pack)
{
    return pack;
}

// A tile of a product of halves on tensor cores, with sums in float. Two warps lie side by side, SIZE / 32 below each other;
// a warp has 32 rows and SIZE / 2 columns and multiplies 16 by 16 with 16 by 8 elements at a time, which leaves every
// thread with two neighbouring columns of a row and of the eighth row after it.
template <class T, int SIZE, int L, int R, class H = T> struct fuse_tensor_product {
    static constexpr int ROWS = 4, COLUMNS = SIZE / 8, DEPTH = 32, W = 8;
    // A tile keeps the order of its operand, with 16 bytes between its lines that keep them in different banks.
    template <int LIE> struct Tile { H of[LIE == 2 ? DEPTH : SIZE][(LIE == 2 ? SIZE : DEPTH) + 8]; };
    typedef Tile<L> LeftTile;
    typedef Tile<R> RightTile;
    typedef fuse_packs<T, L, SIZE, DEPTH, W> LeftPacks;
    typedef fuse_packs<T, R, SIZE, DEPTH, W> RightPacks;

    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 64 * 32 + i * 8 + threadIdx.x % 32 / 4;
    }

    static __device__ __forceinline__ int column(int j)
    {
        return threadIdx.x / 32 % 2 * (SIZE / 2) + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
    }

    template <int LIE> static __device__ __forceinline__ void put(Tile<LIE>& tile, const fuse_packs<T, LIE, SIZE, DEPTH, W>& packs)
    {
#pragma unroll
        for (int pack = 0; pack < packs.COUNT; ++pack) {
            const int x = packs.x() + pack * packs.X_STEP, k = packs.k() + pack * packs.K_STEP;
            fuse_as_halves(packs.of[pack]).store(LIE == 2 ? &tile.of[k][x] : &tile.of[x][k]);
        }
    }

    static __device__ __forceinline__ void multiply(float (&product)[ROWS][COLUMNS], const Tile<L>& left_tile, const Tile<R>& right_tile)
    {
        const int m = threadIdx.x / 64 * 32, n = threadIdx.x / 32 % 2 * (SIZE / 2);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned left[2][4], right[SIZE / 32][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) square(left[i], left_tile, m + 16 * i, k);
#pragma unroll
            for (int j = 0; j < SIZE / 32; ++j) square(right[j], right_tile, n + 16 * j, k);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < SIZE / 16; ++j) {
                    float* upper = &product[2 * i][2 * j];
                    float* lower = &product[2 * i + 1][2 * j];
                    fuse_multiply_halves(H(), upper, lower, left[i], right[j / 2][j % 2], right[j / 2][j % 2 + 2]);
                }
        }
    }

    // 16 by 16 elements from (x, k) on, two of a thread in a register: x 0-7 and x 8-15 of k 0-7, then both of k 8-15.
    template <int LIE> static __device__ __forceinline__ void square(unsigned (&to)[4], const Tile<LIE>& tile, int x, int k)
    {
        const int lane = threadIdx.x % 32;
        if (LIE == 2) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(&tile.of[k + lane / 16 * 8 + lane % 8][x + lane / 8 % 2 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
        } else {
            const unsigned at = (unsigned)__cvta_generic_to_shared(&tile.of[x + lane % 16][k + lane / 16 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
        }
    }
};
#endif
