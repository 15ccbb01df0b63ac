// Products of few rows. They are as fast as their right operand can be read: a block takes a strip of columns, as wide as a
// cache line, and a range of inner positions, and has many reads of 16 bytes in flight. Its 8 warps share the range; what
// they come to is added in their order, and then what the blocks of a strip came to in theirs.

// What a block computes: rows from m and columns from n on at one place of the batch axes, inner positions from k to k_end, of one
// of so many products with one left operand.
template <int ROWS, int COLUMNS, int UNIT = 512> struct fuse_strip {
    fuse_at<3> batch;
    long long m, n, k, k_end;
    unsigned index, product, products, part, parts;

    __device__ __forceinline__ fuse_strip(const fuse_shape& shape, unsigned products) : products(products)
    {
        const unsigned across = (unsigned)((shape.n + COLUMNS - 1) / COLUMNS), down = (unsigned)((shape.m + ROWS - 1) / ROWS);
        const unsigned strips = across * down * (unsigned)(shape.batch[0] * shape.batch[1] * shape.batch[2]);
        index = blockIdx.x % strips;
        product = blockIdx.x / strips % products;
        part = blockIdx.x / strips / products;
        parts = gridDim.x / strips / products;
        n = (long long)(index % across) * COLUMNS;
        m = (long long)(index / across % down) * ROWS;
        const unsigned place = index / across / down;
        const unsigned two = place / (unsigned)shape.batch[2], one = two / (unsigned)shape.batch[1];
        batch = {(IDX)one, (IDX)(two - one * (unsigned)shape.batch[1]), (IDX)(place - two * (unsigned)shape.batch[2])};
        // Whole multiples of what the warps take at once.
        const long long range = ((shape.k + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
        k = min(shape.k, part * range);
        k_end = min(shape.k, k + range);
    }

    __device__ __forceinline__ long long start(const fuse_matrix& strides) const
    {
        return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
    }
};

// W elements, `stride` apart; those from `live` on are 0. Of a RUN all are there or none.
template <bool RUN, class T, int W>
static __device__ __forceinline__ void fuse_read_some(fuse_pack<T, W>& to, const T* from, long long stride, long long live)
{
    if (RUN && live > 0) return to.load(from);
#pragma unroll
    for (int w = 0; w < W; ++w) to.set(w, !RUN && w < live ? from[w * stride] : T());
}

// Brings one element into shared memory, or 0; behind the thread where it can.
template <class A, class T> static __device__ __forceinline__ void fuse_put(A* to, const T* from, bool there)
{
    *to = there ? fuse_to_compute(*from) : A();
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void fuse_put(float* to, const float* from, bool there)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(there ? 4 : 0) : "memory");
}
#endif

// Plain arithmetic. Where columns are neighbours, 8 threads have W columns each of 32 inner positions at once; else each warp
// has W columns of its own, and its threads W inner positions each.
template <class T, int N, int R> struct fuse_skinny {
    typedef decltype(fuse_to_compute(T())) A;
    static constexpr int ROWS = N, W = sizeof(T) == 1 ? 4 : 16 / sizeof(T), COLUMNS = 8 * W;
    static constexpr bool ALONG = R == 1;
    // Inner positions for which the rows lie in shared memory, those of one read, and reads at once.
    static constexpr int CHUNK = 32768 / ROWS / sizeof(A), PASS = ALONG ? 32 * W : 32, AHEAD = !ALONG ? 8 : W < 8 ? 2 : 1;
    typedef fuse_strip<ROWS, COLUMNS, sizeof(T) < 4 ? 256 : 512> Strip;
    struct Packs { fuse_pack<T, W> of[ALONG ? AHEAD * W : AHEAD]; };
    typedef A Sums[ALONG ? 1 : 8][ROWS][COLUMNS];

    // The rows on their way in.
    static __device__ __forceinline__ A* rows()
    {
        extern __shared__ uint4 fuse_shared[];
        return (A*)fuse_shared;
    }

    // The values of all warps on their way out, in the same place.
    static __device__ __forceinline__ Sums& sums() { return *(Sums*)rows(); }

    static __device__ __forceinline__ int column()
    {
        return ALONG ? threadIdx.x / 32 * W : threadIdx.x % 8 * W;
    }

    static __device__ __forceinline__ int place(int pass) { return ALONG ? (pass * 32 + threadIdx.x % 32) * W : pass * 32 + threadIdx.x / 8; }

    static __device__ __forceinline__ void read(Packs& packs, const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides, long long k)
    {
#pragma unroll
        for (int pass = 0; pass < AHEAD; ++pass) {
            const long long at = k + place(pass), n = strip.n + column();
            if constexpr (ALONG) {
#pragma unroll
                for (int c = 0; c < W; ++c) {
                    const long long live = n + c < shape.n ? strip.k_end - at : 0;
                    fuse_read_some<true>(packs.of[pass * W + c], right + at + (n + c) * strides.axis[4], 1, live);
                }
            } else {
                const long long live = at < strip.k_end ? shape.n - n : 0;
                const long long step = R == 2 ? 1 : strides.axis[4];
                fuse_read_some<R == 2>(packs.of[pass], right + at * strides.axis[3] + n * step, step, live);
            }
        }
    }

    static __device__ __forceinline__ void stage(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& strides, long long from)
    {
        const int count = (int)min((long long)CHUNK, (strip.k_end - from + AHEAD * PASS - 1) / (AHEAD * PASS) * (AHEAD * PASS));
#pragma unroll 4
        for (int n = threadIdx.x; n < ROWS * count; n += 256) {
            const int row = n / count, k = n % count;
            const bool inside = strip.m + row < shape.m && from + k < strip.k_end;
            const T* x = left + (inside ? (strip.m + row) * strides.axis[3] + (from + k) * strides.axis[4] : 0);
            fuse_put(&rows()[ALONG ? row * CHUNK + k : k * ROWS + row], x, inside);
        }
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    }

    static __device__ __forceinline__ void multiply(A (&sum)[ROWS][W], const Packs& packs, int from)
    {
#pragma unroll
        for (int pass = 0; pass < AHEAD; ++pass) {
            const int at = from + place(pass);
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int c = 0; c < W; ++c) {
                    if constexpr (ALONG) {
#pragma unroll
                        for (int w = 0; w < W; ++w)
                            sum[row][c] = fuse_multiply_add(rows()[row * CHUNK + at + w], fuse_to_compute(packs.of[pass * W + c][w]), sum[row][c]);
                    } else {
                        sum[row][c] = fuse_multiply_add(rows()[at * ROWS + row], fuse_to_compute(packs.of[pass][c]), sum[row][c]);
                    }
                }
        }
    }

    // Leaves what every warp came to in shared memory.
    static __device__ __forceinline__ void run(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& left_strides, const T* right, const fuse_matrix& right_strides)
    {
        A sum[ROWS][W] = {};
        Packs packs;
        for (long long from = strip.k; from < strip.k_end; from += CHUNK) {
            read(packs, strip, shape, right, right_strides, from);
            __syncthreads();
            stage(strip, shape, left, left_strides, from);
            __syncthreads();
            for (int k = 0; k < CHUNK && from + k < strip.k_end; k += AHEAD * PASS) {
                if (k > 0) read(packs, strip, shape, right, right_strides, from + k);
                multiply(sum, packs, k);
            }
        }
        __syncthreads();
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
#pragma unroll
            for (int c = 0; c < W; ++c) {
                A x = sum[row][c];
#pragma unroll
                for (int s = ALONG ? 1 : 8; s < 32; s *= 2) x = fuse_multiply_add(x, (A)1, fuse_shuffle(x, s));
                if (ALONG && threadIdx.x % 32 == 0) sums()[0][row][column() + c] = x;
                if (!ALONG && threadIdx.x % 32 < 8) sums()[threadIdx.x / 32][row][column() + c] = x;
            }
        __syncthreads();
    }

    static __device__ __forceinline__ A total(int row, int column)
    {
        A x = sums()[0][row][column];
#pragma unroll
        for (int warp = 1; warp < (ALONG ? 1 : 8); ++warp) x = fuse_multiply_add(sums()[warp][row][column], (A)1, x);
        return x;
    }
};

// Adds up what the warps of a block and the blocks of a strip came to, into `result` for each of N products. Whether this block is
// the one that goes on.
template <class P, int N> static __device__ __forceinline__ bool fuse_settle(const typename P::Strip& strip, const fuse_shape& shape, typename P::A (&result)[N][P::ROWS][P::COLUMNS], typename P::A* parts, unsigned* counters)
{
    constexpr int SIZE = P::ROWS * P::COLUMNS;
    const int live = (int)min((long long)P::ROWS, shape.m - strip.m) * P::COLUMNS;
    const unsigned blocks = N * strip.parts;
    parts += (long long)strip.index * blocks * SIZE;
    for (int n = threadIdx.x; n < live; n += 256) {
        const typename P::A x = P::total(n / P::COLUMNS, n % P::COLUMNS);
        if (blocks == 1) (&result[0][0][0])[n] = x;
        else parts[(strip.product * strip.parts + strip.part) * SIZE + n] = x;
    }
    if (blocks > 1) {
        if (!fuse_last(counters + strip.index, blocks)) return false;
#pragma unroll
        for (int product = 0; product < N; ++product) {
            const typename P::A* const own = parts + product * strip.parts * SIZE;
            for (int n = threadIdx.x; n < live; n += 256) {
                typename P::A x = fuse_fresh(own + n);
#pragma unroll 4
                for (int part = 1; part < strip.parts; ++part) x = fuse_multiply_add(fuse_fresh(own + part * SIZE + n), (typename P::A)1, x);
                (&result[product][0][0])[n] = x;
            }
        }
    }
    __syncthreads();
    return true;
}
