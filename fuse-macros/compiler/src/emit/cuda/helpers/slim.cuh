// Products of few rows of halves. They are as fast as their right operand can be read, in one launch with what follows. Where that lies in
// runs along the inner axis, warps have columns of their own, or share the inner positions of one; every thread has its reads of
// 16 bytes in flight before it multiplies, and reads the rows from the first-level cache.
template <class T, int N, int L, int R, int C> struct fuse_slim {
    typedef float A;
    static constexpr int ROWS = N, COLUMNS = C, W = 8, WARPS = 8;
    // Columns of a warp, and warps that share inner positions.
    static constexpr int OWN = COLUMNS > WARPS ? COLUMNS / WARPS : 1, TOGETHER = COLUMNS < WARPS ? WARPS / COLUMNS : 1;
    // Inner positions of the reads that warps do at once, and how many of them are in flight.
    static constexpr int PASS = TOGETHER * 32 * W, AHEAD = 4;
    typedef fuse_strip<ROWS, COLUMNS> Strip;
    typedef A Sums[TOGETHER][ROWS][COLUMNS];

    static __device__ __forceinline__ Sums& sums()
    {
        __shared__ Sums all;
        return all;
    }

    static __device__ __forceinline__ int column() { return threadIdx.x / 32 / TOGETHER * OWN; }
    // The place of a thread among those that share a column.
    static __device__ __forceinline__ int lane() { return threadIdx.x % (32 * TOGETHER); }

    // Has the second-level cache fetch what will be read, which is safe while kernels before still write.
    static __device__ __forceinline__ void prefetch(const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides)
    {
        constexpr int LINE = 128 / sizeof(T);
#pragma unroll
        for (int c = 0; c < OWN; ++c) {
            const long long n = strip.n + column() + c;
            if (n >= shape.n) break;
            for (long long k = strip.k + lane() * LINE; k < strip.k_end; k += 32 * TOGETHER * LINE)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(right + n * strides.axis[4] + k));
        }
    }

    static __device__ __forceinline__ void multiply(A (&sum)[ROWS][OWN], const fuse_pack<T, W> (&rows)[ROWS], const fuse_pack<T, W> (&columns)[OWN])
    {
#pragma unroll
        for (int w = 0; w < W; ++w)
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int c = 0; c < OWN; ++c)
                    sum[row][c] = fuse_multiply_add(fuse_to_compute(rows[row][w]), fuse_to_compute(columns[c][w]), sum[row][c]);
    }

    // Leaves what every warp came to in shared memory.
    static __device__ __forceinline__ void run(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& left_strides, const T* right, const fuse_matrix& right_strides)
    {
        A sum[ROWS][OWN] = {};
        for (long long from = strip.k + lane() * W; from < strip.k_end; from += AHEAD * PASS) {
            fuse_pack<T, W> columns[AHEAD][OWN];
#pragma unroll
            for (int pass = 0; pass < AHEAD; ++pass)
#pragma unroll
                for (int c = 0; c < OWN; ++c) {
                    const long long k = from + pass * PASS, n = strip.n + column() + c;
                    fuse_read_some<true>(columns[pass][c], right + n * right_strides.axis[4] + k, 1, n < shape.n ? strip.k_end - k : 0);
                }
#pragma unroll
            for (int pass = 0; pass < AHEAD; ++pass) {
                const long long k = from + pass * PASS;
                fuse_pack<T, W> rows[ROWS];
#pragma unroll
                for (int row = 0; row < ROWS; ++row) {
                    const long long m = strip.m + row, step = L == 1 ? 1 : left_strides.axis[4];
                    fuse_read_some<L == 1>(rows[row], left + m * left_strides.axis[3] + k * step, step, m < shape.m ? strip.k_end - k : 0);
                }
                multiply(sum, rows, columns[pass]);
            }
        }
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
#pragma unroll
            for (int c = 0; c < OWN; ++c) {
                A x = sum[row][c];
#pragma unroll
                for (int s = 1; s < 32; s *= 2) x = fuse_multiply_add(x, (A)1, fuse_shuffle(x, s));
                if (threadIdx.x % 32 == 0) sums()[threadIdx.x / 32 % TOGETHER][row][column() + c] = x;
            }
        __syncthreads();
    }

    static __device__ __forceinline__ A total(int row, int column)
    {
        A x = sums()[0][row][column];
#pragma unroll
        for (int share = 1; share < TOGETHER; ++share) x = fuse_multiply_add(sums()[share][row][column], (A)1, x);
        return x;
    }
};

// Where it lies in runs across, blocks have strips of it as those of floats.
template <class T, int N, int L, int C> struct fuse_slim<T, N, L, 2, C> : fuse_skinny<T, N, 2> {
    typedef fuse_skinny<T, N, 2> All;
    typedef typename All::Strip Strip;

    static __device__ __forceinline__ void prefetch(const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides)
    {
        const long long n = strip.n + threadIdx.x % 2 * (All::COLUMNS / 2);
        if (n >= shape.n) return;
        for (long long k = strip.k + threadIdx.x / 2; k < strip.k_end; k += 128)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(right + k * strides.axis[3] + n));
    }
};
