static __device__ __forceinline__ float fuse_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fuse_multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
static __device__ __forceinline__ int fuse_multiply_add(int a, int b, int c)
{
    return (int)((unsigned)a * (unsigned)b + (unsigned)c);
}
static __device__ __forceinline__ long long fuse_multiply_add(long long a, long long b, long long c)
{
    return (long long)((unsigned long long)a * (unsigned long long)b + (unsigned long long)c);
}
static __device__ __forceinline__ unsigned char fuse_multiply_add(unsigned char a, unsigned char b, unsigned char c)
{
    return (unsigned char)(a * b + c);
}

// The part of a product that is a block's, tile after tile: while one pair of tiles is multiplied, the next one is on its way.
template <class P, class T, class A, int ROWS, int COLUMNS>
static __device__ __forceinline__ void fuse_multiply(A (&product)[ROWS][COLUMNS], const fuse_side<T>& left, const fuse_side<T>& right)
{
    __shared__ alignas(16) typename P::LeftTile left_tile[2];
    __shared__ alignas(16) typename P::RightTile right_tile[2];
    typename P::LeftPacks left_packs(left);
    typename P::RightPacks right_packs(right);
    left_packs.read();
    right_packs.read();
    for (long long k = 0, now = 0; k < left.k_end; k += P::DEPTH, now ^= 1) {
        P::put(left_tile[now], left_packs);
        P::put(right_tile[now], right_packs);
        __syncthreads();
        if (k + P::DEPTH < left.k_end) {
            left_packs.read();
            right_packs.read();
        }
        P::multiply(product, left_tile[now], right_tile[now]);
    }
}

// A tile of a product in plain arithmetic. Two warps lie side by side, SIZE / 32 below each other; a warp has 32 rows and
// SIZE / 2 columns, a thread of its 4 by 8 has fours of neighbouring rows and columns. Inner positions ascend.
template <class T, int SIZE, int L, int R> struct fuse_plain_product {
    typedef decltype(fuse_to_compute(T())) A;
    static constexpr int ROWS = 8, COLUMNS = SIZE / 16, DEPTH = 16, W = sizeof(T) < 8 ? 4 : 2;
    // Four more columns than are used keep what is turned on its way in different banks.
    typedef A Tile[DEPTH][SIZE + 4];
    typedef Tile LeftTile, RightTile;
    typedef fuse_packs<T, L, SIZE, DEPTH, W> LeftPacks;
    typedef fuse_packs<T, R, SIZE, DEPTH, W> RightPacks;

    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 64 * 32 + i / 4 * 16 + threadIdx.x % 32 / 8 * 4 + i % 4;
    }

    static __device__ __forceinline__ int column(int j)
    {
        return threadIdx.x / 32 % 2 * (SIZE / 2) + j / 4 * 32 + threadIdx.x % 8 * 4 + j % 4;
    }

    template <int LIE> static __device__ __forceinline__ void put(Tile& tile, const fuse_packs<T, LIE, SIZE, DEPTH, W>& packs)
    {
#pragma unroll
        for (int pack = 0; pack < packs.COUNT; ++pack) {
            const int x = packs.x() + pack * packs.X_STEP, k = packs.k() + pack * packs.K_STEP;
            fuse_pack<A, W> wide;
#pragma unroll
            for (int w = 0; w < W; ++w) wide.set(w, fuse_to_compute(packs.of[pack][w]));
            if (LIE == 2) {
                wide.store(&tile[k][x]);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) tile[k + w][x] = wide[w];
            }
        }
    }

    static __device__ __forceinline__ void multiply(A (&product)[ROWS][COLUMNS], const Tile& left_tile, const Tile& right_tile)
    {
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            fuse_pack<A, 4> left[ROWS / 4], right[COLUMNS / 4];
#pragma unroll
            for (int i = 0; i < ROWS; i += 4) left[i / 4].load(&left_tile[k][row(i)]);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) right[j / 4].load(&right_tile[k][column(j)]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    product[i][j] = fuse_multiply_add(left[i / 4][i % 4], right[j / 4][j % 4], product[i][j]);
        }
    }
};

template <class T, int SIZE, int L, int R> struct fuse_product : fuse_plain_product<T, SIZE, L, R> {};
