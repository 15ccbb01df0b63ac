#if defined(HEAD_KEYS)
// Rows of floats in three parts, as products of attention on its way back meet them: see "thirds.cuh".

// The least and the largest of the first parts met, by the bits of their size; 0 is none.
struct fuse_range {
    unsigned least = ~0u, most = 0;
    __device__ __forceinline__ void meet(unsigned pair)
    {
        pair &= 0x7fff7fffu;
        unsigned below;
        asm("add.u16x2 %0, %1, %2;" : "=r"(below) : "r"(pair), "r"(~0u));
        asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(below));
        asm("max.u16x2 %0, %0, %1;" : "+r"(most) : "r"(pair));
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return min(least & 0xffff, least >> 16) < 27u << 7 || max(most & 0xffff, most >> 16) >= 187u << 7;
    }
};

// 64 rows that are the right operand: eight neighbours of a row lie next to each other, behind them those of the next rows. So eight
// rows are a piece for products along the rows and for those across them.
template <int WIDE> struct fuse_third_right {
    // The next eight neighbours lie in other banks.
    static constexpr int CHUNKS = WIDE / 8, NEXT = 64 * 16 + 16, PART = CHUNKS * NEXT, BYTES = 3 * PART, PACKS = 64 * CHUNKS / 128, SOME = PACKS > 4 ? PACKS / 2 : PACKS;

    static __device__ __forceinline__ int row(int pack) { return (threadIdx.x % 128 + 128 * pack) / CHUNKS; }
    static __device__ __forceinline__ int chunk(int pack) { return (threadIdx.x % 128 + 128 * pack) % CHUNKS; }

    // Reads some packs that a thread of a warpgroup splits, from number `first` on; what is not there is 0.
    static __device__ __forceinline__ void read(float (&of)[SOME][8], int first, const float* from, long long stride, int rows, int columns)
    {
#pragma unroll
        for (int k = 0; k < SOME; ++k)
#pragma unroll
            for (int four = 0; four < 8; four += 4) {
                const int at = row(first + k), column = chunk(first + k) * 8 + four;
                float4 x = make_float4(0, 0, 0, 0);
                if (at < rows && column < columns) x = *(const float4*)(from + at * stride + column);
                of[k][four] = x.x, of[k][four + 1] = x.y, of[k][four + 2] = x.z, of[k][four + 3] = x.w;
            }
    }

    static __device__ __forceinline__ void write(unsigned char* to, const float (&of)[SOME][8], int first, fuse_range& range)
    {
#pragma unroll
        for (int k = 0; k < SOME; ++k) {
            unsigned parts[3][4];
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                fuse_third_pair(parts, pair, of[k][2 * pair], of[k][2 * pair + 1]);
                range.meet(parts[0][pair]);
            }
#pragma unroll
            for (int part = 0; part < 3; ++part)
                *(uint4*)(to + part * PART + chunk(first + k) * NEXT + row(first + k) * 16) =
                    make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
        }
    }

    // Where products along the rows find 16 inner positions, and products across them 16 rows.
    static __device__ __forceinline__ unsigned long long along(const unsigned char* at, int step) { return fuse_pieces(at + step * 2 * NEXT, NEXT, 128); }
    static __device__ __forceinline__ unsigned long long across(const unsigned char* at, int step, int column)
    {
        return fuse_pieces(at + column / 8 * NEXT + step * 256, 128, NEXT);
    }
};

// 64 rows that are the left operand of many products: a thread leaves their parts where it will read them again.
template <int WIDE> struct fuse_third_left {
    static constexpr int STEPS = WIDE / 16;
    uint4 of[STEPS][3][128];

    // From this row and the one eight behind it, of which `rows` are there. Whether any of the warp's are odd.
    __device__ __forceinline__ bool take(const float* from, long long stride, int rows, int columns)
    {
        const int column = threadIdx.x % 4 * 2;
        fuse_range range;
        float2 read[STEPS][4];
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                const int d = step * 16 + pair / 2 * 8 + column, row = pair % 2 * 8;
                read[step][pair] = row < rows && d < columns ? *(const float2*)(from + row * stride + d) : make_float2(0, 0);
            }
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            unsigned parts[3][4];
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                fuse_third_pair(parts, pair, read[step][pair].x, read[step][pair].y);
                range.meet(parts[0][pair]);
            }
#pragma unroll
            for (int part = 0; part < 3; ++part)
                of[step][part][threadIdx.x % 128] = make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
        }
        return __any_sync(~0u, range.is_odd());
    }

    __device__ __forceinline__ void get(unsigned (&parts)[3][4], int step) const
    {
#pragma unroll
        for (int part = 0; part < 3; ++part) {
            const uint4 x = of[step][part][threadIdx.x % 128];
            parts[part][0] = x.x, parts[part][1] = x.y, parts[part][2] = x.z, parts[part][3] = x.w;
        }
    }
};

// The six products of parts, with N columns on the right; `part`: how far its parts are apart.
template <bool ACROSS, int N>
static __device__ __forceinline__ void fuse_multiply_thirds(float (&sum)[N], const unsigned (&left)[3][4], unsigned long long right, int part)
{
    const auto add = [&](int of_left, int of_right, int adds) {
        const unsigned long long at = right + of_right * (part / 16);
        if (ACROSS) fuse_wgmma_heads<fuse_bf16, 2 * N>::registers(sum, left[of_left], at, adds);
        else fuse_wgmma_heads<fuse_bf16, 2 * N>::registers_along(sum, left[of_left], at, adds);
    };
    fuse_wgmma_begin();
    add(2, 0, 0);
    add(1, 1, 1);
    add(0, 2, 1);
    add(1, 0, 1);
    add(0, 1, 1);
    add(0, 0, 1);
    fuse_wgmma_end();
}

template <int N> static __device__ __forceinline__ void fuse_add_sums(float (&to)[N], const float (&sum)[N])
{
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] += sum[j];
}

// s = A B^T of 64 rows each. The first two steps may be on their way while other things are done. SUMS, 1 or 2: while one is added to the
// rest, another one is on its way.
template <int WIDE, int SUMS> struct fuse_third_product {
    static constexpr int STEPS = WIDE / 16;
    typedef fuse_third_right<WIDE> Right;
    const fuse_third_left<WIDE>& left;
    const unsigned char* right;
    float sum[SUMS][32];
    unsigned parts[2][3][4];

    __device__ __forceinline__ fuse_third_product(const fuse_third_left<WIDE>& left, const unsigned char* right) : left(left), right(right) {}

    __device__ __forceinline__ void begin(float (&s)[32])
    {
        left.get(parts[0], 0);
        fuse_multiply_thirds<false>(s, parts[0], Right::along(right, 0), Right::PART);
        left.get(parts[1], 1);
        fuse_multiply_thirds<false>(sum[1 % SUMS], parts[1], Right::along(right, 1), Right::PART);
    }

    __device__ __forceinline__ void end(float (&s)[32])
    {
        fuse_wgmma_await<1>(s);
#pragma unroll
        for (int step = 2; step < STEPS; ++step) {
            float (&last)[32] = sum[(step - 1) % SUMS];
            left.get(parts[step % 2], step);
            if (SUMS == 1) {
                fuse_wgmma_await<0>(last);
                fuse_add_sums(s, last);
            }
            fuse_multiply_thirds<false>(sum[step % SUMS], parts[step % 2], Right::along(right, step), Right::PART);
            if (SUMS == 2) {
                fuse_wgmma_await<1>(last);
                fuse_add_sums(s, last);
            }
        }
        fuse_wgmma_await<0>(sum[(STEPS - 1) % SUMS]);
        fuse_add_sums(s, sum[(STEPS - 1) % SUMS]);
    }
};

// o += P B for 64 rows P, which `prepare` gives as the left operand of a step of 16, and 64 rows B of WIDE columns. `add` adds what a step
// sums. `beside`: what is done while products of a step are on their way.
template <int WIDE, int SUMS, class PREPARE, class ADD, class BESIDE>
static __device__ __forceinline__ void fuse_add_thirds_across(float (&o)[WIDE / 2], const unsigned char* right, const PREPARE& prepare, const ADD& add,
                                                              const BESIDE& beside)
{
    typedef fuse_third_right<WIDE> Right;
    constexpr int SUM = WIDE > 96 ? 64 : WIDE, WIDES = WIDE / SUM, ALL = 4 * WIDES;
    unsigned parts[2][3][4];
    float sum[SUMS][SUM / 2];
    const auto absorb = [&](int i) {
#pragma unroll
        for (int j = 0; j < SUM / 2; ++j) add(o[i % WIDES * (SUM / 2) + j], sum[i % SUMS][j], i / WIDES, j);
    };
    prepare(parts[0], 0);
#pragma unroll
    for (int i = 0; i < ALL; ++i) {
        const int step = i / WIDES;
        if (SUMS == 1 && i > 0) {
            fuse_wgmma_await<0>(sum[0]);
            absorb(i - 1);
        }
        fuse_multiply_thirds<true>(sum[i % SUMS], parts[step % 2], Right::across(right, step, i % WIDES * SUM), Right::PART);
        if (SUMS == 2 && i > 0) {
            fuse_wgmma_await<1>(sum[(i + 1) % SUMS]);
            absorb(i - 1);
        }
        if (i % WIDES == WIDES - 1) {
            if (step < 3) prepare(parts[(step + 1) % 2], step + 1);
            beside(step);
        }
    }
    fuse_wgmma_await<0>(sum[(ALL - 1) % SUMS]);
    absorb(ALL - 1);
}

// The left operand of a step, in the places where a thread has the sums of another product.
template <class OF> static __device__ __forceinline__ void fuse_split_step(unsigned (&parts)[3][4], int step, const OF& of)
{
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) fuse_third_pair(parts, pair, of(8 * step + 2 * pair), of(8 * step + 2 * pair + 1));
}

// Makes what a warp has larger where its parts would be too small for bfloat16; by what sums with it are multiplied.
static __device__ __forceinline__ float fuse_enlarge(float (&p)[32])
{
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) most = fmaxf(most, fabsf(p[i]));
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, stride));
    if (most >= 0x1p-60f) return 1.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) p[i] *= 0x1p80f;
    return 0x1p-80f;
}

// s = A B^T in float arithmetic: of a thread's two rows on the left, and of 64 rows on the right, `rows` of which are there.
static __device__ __forceinline__ void fuse_multiply_plainly(float (&s)[32], const float* first, const float* second, const float* right, long long stride,
                                                             int rows, int depth)
{
#pragma unroll
    for (int j = 0; j < 32; ++j) s[j] = 0.0f;
#pragma unroll 1
    for (int d = 0; d < depth; ++d) {
        const float a[2] = {first[d], second[d]};
#pragma unroll
        for (int j = 0; j < 32; ++j) {
            const int row = min(j / 4 * 8 + (int)threadIdx.x % 4 * 2 + j % 2, rows - 1);
            s[j] = __fmaf_rn(a[j / 2 % 2], right[row * stride + d], s[j]);
        }
    }
}

// o += P B in float arithmetic, for the P of a warp.
template <int N>
static __device__ __forceinline__ void fuse_add_plainly_across(float (&o)[N], const float (&p)[32], const float* right, long long stride, int rows, int columns)
{
    const int lane = threadIdx.x % 32, column = lane % 4 * 2;
#pragma unroll 1
    for (int row = 0; row < min(rows, 64); ++row) {
        float of[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float own = 0.0f;
#pragma unroll
            for (int eight = 0; eight < 8; ++eight) {
                const float even = p[4 * eight + 2 * r], odd = p[4 * eight + 2 * r + 1];
                if (eight == row / 8) own = row % 2 == 0 ? even : odd;
            }
            of[r] = __shfl_sync(~0u, own, lane / 4 * 4 + row % 8 / 2);
        }
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const int at = j / 4 * 8 + column + j % 2;
            o[j] = __fmaf_rn(of[j / 2 % 2], at < columns ? right[row * stride + at] : 0.0f, o[j]);
        }
    }
}
#endif
