#if defined(HEAD_ROWS)
// Products of single warps (mma.sync) over rows that lie in shared memory as fuse_copy_rows leaves them.

// 16 by 16 elements of rows, R of them and each W long: two of a thread in a register.
template <int R, int W, bool TURNED> static __device__ __forceinline__ void fuse_square(unsigned (&to)[4], unsigned rows, int row, int column)
{
    constexpr int WIDE = fuse_head_row<W>::WIDTH;
    // The row that a thread asks for, and which half of the columns.
    const int lane = threadIdx.x % 32, own = row + lane % 16;
    const unsigned at = rows + column / WIDE * (R * WIDE * 2) + own * (WIDE * 2) + fuse_place<WIDE>(own, column % WIDE / 8 + lane / 16) * 16;
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

// The left operand of a warp's products: 16 * TILES of R rows, which are D long. STAYS: in registers.
template <class T, int R, int D, int TILES, bool STAYS> struct fuse_warp_left {
    unsigned rows;
    int row;
    unsigned of[STAYS ? TILES * D / 16 : 1][4];

    // From a row on, once they are there.
    __device__ __forceinline__ void take(unsigned all, int first)
    {
        rows = all;
        row = first;
#pragma unroll
        for (int i = 0; STAYS && i < TILES * D / 16; ++i) fuse_square<R, D, false>(of[i], rows, row + i / (D / 16) * 16, i % (D / 16) * 16);
    }

    // s = A B^T for N of so many rows B, from one on.
    template <int ROWS, int N> __device__ __forceinline__ void multiply(float (&s)[TILES][N], unsigned at_b, int first) const
    {
#pragma unroll
        for (int i = 0; i < TILES * N; ++i) s[i / N][i % N] = 0.0f;
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            unsigned left[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                if (!STAYS) fuse_square<R, D, false>(left[t], rows, row + 16 * t, d);
#pragma unroll
                for (int k = 0; STAYS && k < 4; ++k) left[t][k] = of[STAYS ? t * (D / 16) + d / 16 : 0][k];
            }
#pragma unroll
            for (int n = 0; n < 2 * N; n += 16) {
                unsigned right[4];
                fuse_square<ROWS, D, false>(right, at_b, first + n, d);
#pragma unroll
                for (int t = 0; t < TILES; ++t)
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        float* const sums = s[t] + n / 2 + 4 * half;
                        fuse_multiply_halves(T(), sums, sums + 2, left[t], right[half], right[half + 2]);
                    }
            }
        }
    }
};

// o += P B for 16 * TILES rows P, which are in registers as the sums of the other product were, and rows B, ROWS of them and each D long,
// from one on. Of their columns it is those from `column` on, as far as there are.
template <class T, int ROWS, int D, int TILES, int N, int O>
static __device__ __forceinline__ void fuse_add_across(float (&o)[TILES][O], const unsigned (&p)[TILES][N], unsigned at_b, int first, int column)
{
#pragma unroll
    for (int n = 0; n < 4 * N; n += 16) {
        unsigned left[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) left[i / 4][i % 4] = p[i / 4][n / 4 + i % 4];
#pragma unroll
        for (int d = 0; d < 2 * O; d += 16) {
            if (2 * O < D && column + d >= D) break;
            unsigned right[4];
            fuse_square<ROWS, D, true>(right, at_b, first + n, column + d);
#pragma unroll
            for (int t = 0; t < TILES; ++t)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float* const sums = o[t] + d / 2 + 4 * half;
                    fuse_multiply_halves(T(), sums, sums + 2, left[t], right[2 * half], right[2 * half + 1]);
                }
        }
    }
}
#endif
