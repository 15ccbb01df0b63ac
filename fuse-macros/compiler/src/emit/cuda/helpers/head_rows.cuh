#if defined(HEAD_KEYS)
// Rows of queries, keys and values between memory, shared memory and the products of a warpgroup.

// Elements of a row that lie together in shared memory, for rows that are D long.
template <int D> struct fuse_head_row { static constexpr int WIDTH = D % 64 == 0 ? 64 : 32; };

// Copies rows of D elements to where products read them, by a warpgroup; what is not there is 0.
template <int ROWS, int D, class T>
static __device__ __forceinline__ void fuse_copy_rows(unsigned to, const T* from, long long stride, int rows, int columns)
{
    constexpr int WIDE = fuse_head_row<D>::WIDTH, CHUNKS = D / 8, LANES = CHUNKS > 16 ? 32 : CHUNKS > 8 ? 16 : CHUNKS > 4 ? 8 : 4, STEP = 128 / LANES;
    const int chunk = threadIdx.x % LANES, first = threadIdx.x % 128 / LANES;
    if (CHUNKS < LANES && chunk >= CHUNKS) return;
    to += chunk / (WIDE / 8) * (ROWS * WIDE * 2);
    from += first * stride + chunk * 8;
    int left = chunk * 8 < columns ? rows - first : 0;
    const auto at = [=](int row) { return to + row * (WIDE * 2) + fuse_place<WIDE>(row, chunk % (WIDE / 8)) * 16; };
    const unsigned start = at(first);
#pragma unroll 4
    for (int k = 0; k < (ROWS + STEP - 1) / STEP; ++k) {
        if (ROWS % STEP != 0 && first + k * STEP >= ROWS) break;
        // Rows that are a multiple of 8 apart have their places exchanged alike.
        fuse_copy(STEP % 8 == 0 ? start + k * STEP * (WIDE * 2) : at(first + k * STEP), from, left > 0);
        from += STEP * stride;
        left -= STEP;
    }
}

// The left operand of many products: 64 of ROWS rows, which are D long. STAYS: in registers, so that shared memory is free for others.
template <class T, int ROWS, int D, bool STAYS> struct fuse_left {
    static constexpr int WIDTH = fuse_head_row<D>::WIDTH;
    unsigned long long lie;
    unsigned of[STAYS ? D / 4 : 1];

    // Takes the rows of a group, once they are there.
    __device__ __forceinline__ void take(unsigned rows, int group)
    {
        const unsigned at = rows + group * (64 * WIDTH * 2);
        if (!STAYS) lie = fuse_lie<WIDTH>(at, 16);
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16;
#pragma unroll
        for (int d = 0; STAYS && d < D; d += 16) {
            const int place = fuse_place<WIDTH>(row, d % WIDTH / 8 + threadIdx.x % 32 / 16);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(of[d / 4]), "=r"(of[d / 4 + 1]), "=r"(of[d / 4 + 2]), "=r"(of[d / 4 + 3])
                         : "r"(at + d / WIDTH * (ROWS * WIDTH * 2) + row * (WIDTH * 2) + place * 16) : "memory");
        }
    }

    // s = A B^T for N rows B; a thread has two rows, eight apart, and of every eight columns two.
    template <int N> __device__ __forceinline__ void multiply(float (&s)[N], unsigned at_b) const
    {
        const unsigned long long b = fuse_lie<WIDTH>(at_b, 16);
        fuse_hold(s);
        fuse_products_begin();
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            const int block = d / WIDTH, within = d % WIDTH * 2;
            const unsigned long long right = b + (block * (2 * N * WIDTH * 2) + within) / 16;
            if constexpr (STAYS) fuse_wgmma_heads<T, 2 * N>::registers_along(s, of + d / 4, right, d > 0);
            else fuse_wgmma_heads<T, 2 * N>::shared(s, lie + (block * (ROWS * WIDTH * 2) + within) / 16, right, d > 0);
        }
        fuse_products_end();
    }
};

// o += P B for 64 rows P, which are in registers as the sums of the other product were, and N rows B, which are D long.
template <class T, int N, int D>
static __device__ __forceinline__ void fuse_multiply_across(float (&o)[D / 2], const unsigned (&p)[N / 4], unsigned at_b)
{
    constexpr int WIDTH = fuse_head_row<D>::WIDTH;
    const unsigned long long b = fuse_lie<WIDTH>(at_b, N * WIDTH * 2);
    fuse_hold(o);
    fuse_products_begin();
#pragma unroll
    for (int n = 0; n < N; n += 16) fuse_wgmma_heads<T, D>::registers(o, p + n / 4, b + n * WIDTH * 2 / 16, 1);
    fuse_products_end();
}

// Groups take turns at giving tensor cores work, by a barrier each.
template <int GROUPS> struct fuse_group_turns {
    static __device__ __forceinline__ void await(int group)
    {
        if (GROUPS > 1) asm volatile("bar.sync %0, %1;" :: "r"(2 + group), "n"(GROUPS * 128) : "memory");
    }

    static __device__ __forceinline__ void pass_to(int group)
    {
        asm volatile("bar.arrive %0, %1;" :: "r"(2 + group), "n"(GROUPS * 128) : "memory");
    }

    static __device__ __forceinline__ void pass(int group)
    {
#pragma unroll
        for (int k = 1; k < GROUPS; ++k) pass_to(group + k < GROUPS ? group + k : group + k - GROUPS);
    }

    // The first turn is the first group's.
    static __device__ __forceinline__ void open(int group)
    {
        for (int k = 0; k < group; ++k) pass_to(k);
    }
};

// Sums as the left operand of the next product.
template <class T, int N> static __device__ __forceinline__ void fuse_narrow(unsigned (&p)[N / 2], const float (&s)[N])
{
#pragma unroll
    for (int i = 0; i < N / 2; ++i) p[i] = fuse_element<T>::pair(s[2 * i], s[2 * i + 1]);
}

// Writes a row. Halves change hands among the four threads that have it, so that each has 16 bytes that lie together.
template <int N, class T> static __device__ __forceinline__ void fuse_put_row(T* row, int columns, const float (&o)[N], int r)
{
    const int lane = threadIdx.x % 4;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int j = 0; j < N / 4; ++j)
            if (j * 8 < columns) *(float2*)(row + j * 8 + 2 * lane) = make_float2(o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
    } else {
#pragma unroll
        for (int b = 0; b < N / 16; ++b) {
            unsigned w[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) w[k] = fuse_element<T>::pair(o[b * 16 + 4 * k + 2 * r], o[b * 16 + 4 * k + 2 * r + 1]);
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2)
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    if (k & stride) continue;
                    const bool upper = lane & stride;
                    const unsigned got = __shfl_xor_sync(~0u, upper ? w[k] : w[k + stride], stride);
                    (upper ? w[k] : w[k + stride]) = got;
                }
            if (b * 32 + lane * 8 < columns) *(uint4*)(row + b * 32 + lane * 8) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}
#endif
