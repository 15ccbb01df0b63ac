#if defined(HEAD_KEYS)
// Attention of floats in one kernel, by the scheme of "attention.cuh" and with the products of "thirds.cuh": every float is three
// bfloat16, the six largest products of parts are summed over 16 inner positions on tensor cores, and those sums are added up with
// rounding. So are the weights, which are not normalised before the end.
//
// The parts of queries lie in shared memory as a thread needs them, keys and values go past them in a ring, the weights are split in
// registers. While one warpgroup computes a softmax the other one's products run. Products with rows that have values which parts do
// not hold (below 2^-100, from 2^60 on, not finite) are made in float arithmetic.

template <int D, int GROUPS> struct fuse_forward_own { fuse_third_left<D> first[GROUPS]; };

// Queries and keys are D deep, values have DV columns; both are rounded up to a multiple of 32, with zeros. TN keys are a block.
// CAUSAL: no key behind a query. ZERO: a row without keys is 0, and not NaN. PLAIN: a score is the product as it is. KEEPS: writes
// the logarithm of a row's sum of exponentials. PLAIN_WEIGHT: nothing becomes of a weight before the second product.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool CAUSAL, bool ZERO, bool PLAIN, bool KEEPS, bool PLAIN_WEIGHT>
struct fuse_attention_floats {
    static_assert(TN == 64, "scores of a block are the sums of one product");
    static constexpr int TM = 64 * GROUPS;
    typedef fuse_third_ring<fuse_forward_own<D, GROUPS>, (D > DV ? D : DV), GROUPS> Ring;
    static __device__ __forceinline__ float never() { return __int_as_float(0xff800000); }

    struct Tile : fuse_query_tile<TM, TN, CAUSAL> {
        using fuse_query_tile<TM, TN, CAUSAL>::fuse_query_tile;
        static constexpr int first = 0;
    };

    // The softmax of a thread's two rows as far as it has come, and by what the last larger score scales what was before it.
    struct Rows { float largest[2], sum[2], scale[2]; };

    // Scores of query m and key n and others become exponentials. EDGE: there may be keys that are none, or that are behind the query.
    template <bool EDGE, class SCORE>
    static __device__ __forceinline__ void soften(float (&s)[TN / 2], Rows& rows, const int (&batch)[3], int m, int n, const fuse_attention_shape& shape,
                                                  float to_exp2, const SCORE& score)
    {
        if (!PLAIN || EDGE) {
#pragma unroll
            for (int i = 0; i < TN / 2; ++i) {
                const int row = m + i / 2 % 2 * 8, column = n + i / 4 * 8 + i % 2;
                // Places that are none read like the last one that is.
                if (!PLAIN) s[i] = score(batch, s[i], min(row, (int)shape.m - 1), EDGE ? min(column, (int)shape.n - 1) : column);
                if (EDGE && (column >= (int)shape.n || (CAUSAL && column > row))) s[i] = never();
            }
        }
        float part[2][4], base[2];
#pragma unroll
        for (int j = 0; j < TN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float two = fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]);
                part[r][j % 4] = j < 4 ? two : fmaxf(part[r][j % 4], two);
            }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float largest = fmaxf(fmaxf(part[r][0], part[r][1]), fmaxf(part[r][2], part[r][3]));
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, stride));
            largest = fmaxf(rows.largest[r], largest);
            // A difference is exact enough however large both are.
            base[r] = largest == never() ? 0.0f : largest;
            rows.scale[r] = fuse_exp2((rows.largest[r] - base[r]) * to_exp2);
            rows.largest[r] = largest;
        }
#pragma unroll
        for (int j = 0; j < TN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float* const pair = s + 4 * j + 2 * r;
                pair[0] = fuse_exp2((pair[0] - base[r]) * to_exp2);
                pair[1] = fuse_exp2((pair[1] - base[r]) * to_exp2);
                const float two = pair[0] + pair[1];
                part[r][j % 4] = j < 4 ? two : part[r][j % 4] + two;
            }
#pragma unroll
        for (int r = 0; r < 2; ++r) rows.sum[r] = __fmaf_rn(rows.sum[r], rows.scale[r], (part[r][0] + part[r][1]) + (part[r][2] + part[r][3]));
    }

    static __device__ __forceinline__ void finish(const float (&o)[DV / 2], const Rows& rows, const Tile& tile, int line, TO* to,
                                                  const fuse_heads& to_strides, float* lse, float factor, const fuse_attention_shape& shape)
    {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float sum = rows.sum[r];
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
            const float scale = ZERO && sum == 0.0f ? 0.0f : 1.0f / sum;
            const int m = tile.m + line + 8 * r;
            if (m >= (int)shape.m) continue;
            if (KEEPS && threadIdx.x % 4 == 0) fuse_put_log<ZERO>(lse, shape, tile.batch, m, rows.largest[r], factor, sum);
            fuse_put_line(tile.in(to, to_strides, m), (int)shape.columns, o, r, scale);
        }
    }

    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, TO* to, const fuse_heads& to_strides, float* lse,
                                               const fuse_attention_shape& shape, unsigned* counters, float factor, const SCORE& score, const WEIGHT& weight)
    {
        constexpr bool DRAWN = !PLAIN_WEIGHT && fuse_is_kept<WEIGHT>::IS;
        typename Ring::Shared& shared = Ring::shared();
        // Registers that reading does not need go to those that multiply.
        if (threadIdx.x < 128) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
            typename Ring::Feeder feeder = {shared, shape};
            feeder.template run<Tile>(counters, [&](auto& feeder, const Tile& tile, int block) {
                const int n = block * TN, rows = (int)shape.n - n;
                feeder.template bring<D>(tile.in(k.from, k.strides, n), k.strides.row, rows, (int)shape.depth, nullptr);
                feeder.template bring<DV>(tile.in(v.from, v.strides, n), v.strides.row, rows, (int)shape.columns, nullptr, [&](auto& slot) {
                    if constexpr (DRAWN) feeder.bring_kept_keys(slot, weight, tile.batch, tile.m, n);
                });
            });
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
            const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, line = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
            const int last_m = (int)shape.m - 1, last_n = (int)shape.n - 1;
            // exp(x) = 2^(x log2(e))
            const float to_exp2 = factor * 1.44269504f;
            fuse_third_left<D>& queries = shared.own.first[group];
            typename Ring::Way way = {shared};
            for (;;) {
                const int number = way.tile();
                if (number >= shape.tiles * shape.heads) break;
                const Tile tile(number, shape);
                const int first = tile.m + group * 64, m = tile.m + line;
                const bool odd_queries = queries.take(tile.in(q.from, q.strides, m), q.strides.row, (int)shape.m - m, (int)shape.depth);
                float s[TN / 2], o[DV / 2] = {};
                Rows rows = {{never(), never()}, {}, {}};
                // What a block adds.
                const auto step = [&](int block) {
                    const int n = block * TN, column = n + lane % 4 * 2, live = (int)shape.n - n;
                    const unsigned keys = way.take();
                    const bool odd_keys = way.is_odd(keys);
                    fuse_third_product<D, 2> product(queries, way.parts(keys));
                    product.begin(s);
                    product.end(s);
                    way.release(keys);
                    if (odd_keys || odd_queries)
                        fuse_multiply_plainly(s, tile.in(q.from, q.strides, min(m, last_m)), tile.in(q.from, q.strides, min(m + 8, last_m)),
                                              tile.in(k.from, k.strides, n), k.strides.row, live, (int)shape.depth);
                    if (live < TN || (CAUSAL && n + TN - 1 > first)) soften<true>(s, rows, tile.batch, m, column, shape, to_exp2, score);
                    else soften<false>(s, rows, tile.batch, m, column, shape, to_exp2, score);
                    const unsigned values = way.take();
                    if constexpr (DRAWN) {
                        typename Ring::Kept kept;
                        kept.take(shared.slot[values], line);
#pragma unroll
                        for (int i = 0; i < TN / 2; ++i) s[i] *= kept.has(i) ? weight.scale : 0.0f;
                    } else if (!PLAIN_WEIGHT) {
#pragma unroll
                        for (int i = 0; i < TN / 2; ++i)
                            s[i] = weight(tile.batch, s[i], min(m + i / 2 % 2 * 8, last_m), min(column + i / 4 * 8 + i % 2, last_n));
                    }
                    if (way.is_odd(values)) {
#pragma unroll
                        for (int j = 0; j < DV / 2; ++j) o[j] *= rows.scale[j / 2 % 2];
                        fuse_add_plainly_across(o, s, tile.in(v.from, v.strides, n), v.strides.row, live, (int)shape.columns);
                    } else {
                        const auto split = [&](unsigned (&parts)[3][4], int step) { fuse_split_step(parts, step, [&](int i) { return s[i]; }); };
                        const auto add = [&](float& to, float of, int step, int j) { to = step == 0 ? __fmaf_rn(to, rows.scale[j / 2 % 2], of) : to + of; };
                        fuse_add_thirds_across<DV, 2>(o, way.parts(values), split, add, [](int) {});
                    }
                    way.release(values);
                };
                int block = tile.blocks - 1;
                // Blocks behind all queries of this group are there for the other one.
                for (; CAUSAL && block * TN > first + 63; --block)
                    for (int matrix = 0; matrix < 2; ++matrix) way.release(way.take());
#pragma unroll 1
                for (; block >= 0; --block) step(block);
                finish(o, rows, tile, line, to, to_strides, lse, factor, shape);
            }
        }
    }
};
#endif
