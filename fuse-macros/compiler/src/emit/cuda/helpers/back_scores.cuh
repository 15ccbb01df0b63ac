#if defined(HEAD_KEYS)
// Products of queries and keys that a thread has, and where they are: of every eight along the block two, in two lines eight apart.
// TURNED: a line is a key's, otherwise a query's.
template <int N, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT, bool TURNED> struct fuse_back_scores {
    const fuse_attention_shape& shape;
    const int (&batch)[3];
    // The logarithms of all rows, see `fuse_put_log`.
    const float* all_logs;
    int m, n;

    __device__ __forceinline__ int query(int i) const { return m + (TURNED ? i / 4 * 8 + i % 2 : i / 2 % 2 * 8); }
    __device__ __forceinline__ int key(int i) const { return n + (TURNED ? i / 2 % 2 * 8 : i / 4 * 8 + i % 2); }

    // A program of a score or weight; places that are none read like the last one that is.
    template <class PROGRAM, class... MORE>
    __device__ __forceinline__ float run(const PROGRAM& program, int i, float x, MORE... more) const
    {
        return program(batch, x, more..., min(query(i), (int)shape.m - 1), min(key(i), (int)shape.n - 1));
    }

    // The gradient of a product from that of its score. A place that is none has none, even where scores are steep without end.
    template <class SCORE> __device__ __forceinline__ float to_product(const SCORE& of_score, int i, float d, float product) const
    {
        return query(i) < (int)shape.m && key(i) < (int)shape.n ? run(of_score, i, d, product) : 0.0f;
    }

    // What weights and their gradients are multiplied by, looked up and used.
    template <class MULTIPLIERS> __device__ __forceinline__ void look(MULTIPLIERS& by) const
    {
        if (!PLAIN_WEIGHT) by.look(batch, m, n, (int)shape.m - 1, (int)shape.n - 1);
    }
    template <class MULTIPLIERS> __device__ __forceinline__ void settle(MULTIPLIERS& by) const
    {
        if (!PLAIN_WEIGHT) by.settle(n);
    }
    template <class MULTIPLIERS> __device__ __forceinline__ float multiply(const MULTIPLIERS& by, int i, float x) const
    {
        return by.apply(batch, i, x, min(query(i), (int)shape.m - 1), min(key(i), (int)shape.n - 1));
    }

    // Products become weights. EDGE: there may be places that are none, or keys behind a query. `logs`: of place i.
    template <bool EDGE, class LOGS, class SCORE>
    __device__ __forceinline__ void to_weights(float (&s)[N], float (&products)[N], float factor, const LOGS& logs, const SCORE& score) const
    {
        bool is_near = true;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            products[i] = s[i];
            if (!PLAIN) s[i] = run(score, i, s[i]);
            // The difference comes first, for scores may be as large as floats are.
            s[i] = __fmaf_rn(s[i], factor, -logs(i));
            is_near &= fuse_is_near(logs(i));
        }
        if (__any_sync(~0u, !is_near)) {
            const float* const rest = all_logs + shape.heads * shape.m + fuse_rows_before(batch, shape);
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (!fuse_is_near(logs(i))) s[i] -= rest[min(query(i), (int)shape.m - 1)];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            // exp(x) = 2^(x log2(e))
            s[i] = fuse_exp2(s[i] * 1.44269504f);
            if (EDGE && (key(i) >= (int)shape.n || query(i) >= (int)shape.m || (CAUSAL && key(i) > query(i)))) s[i] = 0.0f;
        }
    }

    // What values are multiplied by.
    template <class T, class MULTIPLIERS> __device__ __forceinline__ void narrow(unsigned (&w)[N / 2], const float (&p)[N], const MULTIPLIERS& by) const
    {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float first = PLAIN_WEIGHT ? p[i] : multiply(by, i, p[i]);
            w[i / 2] = fuse_element<T>::pair(first, PLAIN_WEIGHT ? p[i + 1] : multiply(by, i + 1, p[i + 1]));
        }
    }

    // Weights become the gradients of products, but for the factor; `of`: the rowsum(O dO) of place i.
    template <class OF, class MULTIPLIERS, class SCORE>
    __device__ __forceinline__ void to_gradients(float (&p)[N], const float (&d)[N], const float (&products)[N], const OF& of,
                                                 const MULTIPLIERS& by, const SCORE& score) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            p[i] *= (PLAIN_WEIGHT ? d[i] : multiply(by, i, d[i])) - of(i);
            if (!PLAIN) p[i] = to_product(score, i, p[i], products[i]);
        }
    }
};

// The sum of O dO along a row, by the four threads that have it.
template <int DV, class T> static __device__ __forceinline__ float fuse_inner(const T* o, const T* d_o, int columns)
{
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < DV; c += 32) {
        const int at = c + threadIdx.x % 4 * 8;
        if (at >= columns) break;
        const uint4 x = *(const uint4*)(o + at), y = *(const uint4*)(d_o + at);
#pragma unroll
        for (int k = 0; k < 8; ++k) sum = __fmaf_rn(fuse_to_compute(((const T*)&x)[k]), fuse_to_compute(((const T*)&y)[k]), sum);
    }
#pragma unroll
    for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
    return sum;
}

// Copies a number of each of the TM rows, by a warpgroup: by those of its threads that come behind so many.
template <int TM> static __device__ __forceinline__ void fuse_copy_numbers(unsigned to, const float* from, int rows, int threads_before)
{
#pragma unroll
    for (int row = threadIdx.x - threads_before; row < TM; row += 128)
        if (row >= 0) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                                   :: "r"(to + row * 4), "l"(from + (row < rows ? row : 0)), "r"(row < rows ? 4 : 0) : "memory");
}
#endif
