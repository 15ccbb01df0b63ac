#if defined(HEAD_KEYS)
// The way back through attention of floats: the two kernels of "attention_back.cuh", with the products of "thirds.cuh". Every operand
// has three parts, sums over 16 inner positions are made on tensor cores, and those are added up with rounding; weights and their gradients
// are split in registers. Products with rows that have values which parts do not hold (below 2^-100, from 2^60 on, not finite) are
// made in float arithmetic.

// The rows that warpgroups have, on the left of products along queries and keys, and along values.
template <int D, int DV, int GROUPS> struct fuse_back_own {
    fuse_third_left<D> first[GROUPS];
    fuse_third_left<DV> second[GROUPS];
};

// dQ and d = rowsum(O dO), for 64 queries a group of GROUPS, by blocks of TN keys; D and DV are the depth of queries and the columns of
// values, rounded up to a multiple of 32. The flags are those of the way forward.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT> struct fuse_attention_floats_dq {
    static_assert(TN == 64, "scores of a block are the sums of one product");
    static constexpr int TM = 64 * GROUPS;
    typedef fuse_third_ring<fuse_back_own<D, DV, GROUPS>, (D > DV ? D : DV), GROUPS> Ring;
    typedef fuse_back_scores<TN / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, false> Scores;
    struct Tile : fuse_query_tile<TM, TN, CAUSAL> {
        using fuse_query_tile<TM, TN, CAUSAL>::fuse_query_tile;
        static constexpr int first = 0;
    };

    // The sum of O dO along a row, by the four threads that have it.
    static __device__ __forceinline__ float inner(const T* o, const T* d_o, int columns)
    {
        float sum = 0.0f;
        for (int at = threadIdx.x % 4 * 4; at < columns; at += 16) {
            const float4 x = *(const float4*)(o + at), y = *(const float4*)(d_o + at);
            sum = __fmaf_rn(x.x, y.x, sum);
            sum = __fmaf_rn(x.y, y.y, sum);
            sum = __fmaf_rn(x.z, y.z, sum);
            sum = __fmaf_rn(x.w, y.w, sum);
        }
#pragma unroll
        for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
        return sum;
    }

    template <class SCORE, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> o, fuse_matrices<T> d_o,
                                               const float* lse, float* inners, TO* to, const fuse_heads& to_strides,
                                               const fuse_attention_shape& shape, unsigned* counters, float factor, const SCORE& score,
                                               const OF_WEIGHT& of_weight, const OF_SCORE& of_score)
    {
        constexpr bool DRAWN = !PLAIN_WEIGHT && fuse_is_kept<OF_WEIGHT>::IS;
        typename Ring::Shared& shared = Ring::shared();
        // Registers that reading does not need go to those that multiply.
        if (threadIdx.x < 128) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
            typename Ring::Feeder feeder = {shared, shape};
            feeder.template run<Tile>(counters, [&](auto& feeder, const Tile& tile, int block) {
                const int n = block * TN, rows = (int)shape.n - n;
                feeder.template bring<D>(tile.in(k.from, k.strides, n), k.strides.row, rows, (int)shape.depth, nullptr);
                feeder.template bring<DV>(tile.in(v.from, v.strides, n), v.strides.row, rows, (int)shape.columns, nullptr, [&](auto& slot) {
                    if constexpr (DRAWN) feeder.bring_kept_keys(slot, of_weight, tile.batch, tile.m, n);
                });
            });
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
            const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, line = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
            const int last_m = (int)shape.m - 1;
            fuse_third_left<D>& queries = shared.own.first[group];
            fuse_third_left<DV>& of_results = shared.own.second[group];
            typename Ring::Way way = {shared};
            for (;;) {
                const int number = way.tile();
                if (number >= shape.tiles * shape.heads) break;
                const Tile tile(number, shape);
                const int first = tile.m + group * 64, m = tile.m + line, rows[2] = {min(m, last_m), min(m + 8, last_m)};
                const bool odd_queries = queries.take(tile.in(q.from, q.strides, m), q.strides.row, (int)shape.m - m, (int)shape.depth);
                const bool odd_results = of_results.take(tile.in(d_o.from, d_o.strides, m), d_o.strides.row, (int)shape.m - m, (int)shape.columns);
                float s[TN / 2], products[TN / 2], d[TN / 2], sum[D / 2] = {}, line_lse[2], line_inner[2];
                const long long before = fuse_rows_before(tile.batch, shape);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    line_lse[r] = lse[before + rows[r]];
                    line_inner[r] = inner(tile.in(o.from, o.strides, rows[r]), tile.in(d_o.from, d_o.strides, rows[r]), (int)shape.columns);
                    if (lane % 4 == 0 && m + 8 * r < (int)shape.m) inners[before + m + 8 * r] = line_inner[r];
                }
                const auto lse_of = [&](int i) { return line_lse[i / 2 % 2]; };
                // What a block adds.
                const auto step = [&](int block) {
                    const int n = block * TN, live = (int)shape.n - n;
                    const Scores scores = {shape, tile.batch, lse, m, n + lane % 4 * 2};
                    const auto plainly = [&](float (&product)[TN / 2], const fuse_matrices<T>& left, const fuse_matrices<T>& right, long long depth) {
                        fuse_multiply_plainly(product, tile.in(left.from, left.strides, rows[0]), tile.in(left.from, left.strides, rows[1]),
                                              tile.in(right.from, right.strides, n), right.strides.row, live, (int)depth);
                    };
                    const unsigned keys = way.take();
                    const bool odd_keys = way.is_odd(keys);
                    fuse_third_product<D, 2> of_keys(queries, way.parts(keys));
                    of_keys.begin(s);
                    of_keys.end(s);
                    if (odd_keys || odd_queries) plainly(s, q, k, shape.depth);
                    const unsigned values = way.take();
                    const bool odd_values = way.is_odd(values);
                    fuse_third_product<DV, 2> of_values(of_results, way.parts(values));
                    of_values.begin(d);
                    if (live < TN || (CAUSAL && n + TN - 1 > first)) scores.template to_weights<true>(s, products, factor, lse_of, score);
                    else scores.template to_weights<false>(s, products, factor, lse_of, score);
                    typename Ring::Kept kept;
                    if (DRAWN) kept.take(shared.slot[values], line);
                    of_values.end(d);
                    way.release(values);
                    if (odd_values || odd_results) plainly(d, d_o, v, shape.columns);
#pragma unroll
                    for (int i = 0; i < TN / 2; ++i) {
                        if constexpr (DRAWN) d[i] *= kept.has(i) ? of_weight.scale : 0.0f;
                        else if (!PLAIN_WEIGHT) d[i] = scores.run(of_weight, i, d[i]);
                        s[i] *= d[i] - line_inner[i / 2 % 2];
                        if (!PLAIN) s[i] = scores.to_product(of_score, i, s[i], products[i]);
                    }
                    const T* const across = tile.in(k.from, k.strides, n);
                    if (odd_keys) {
                        fuse_add_plainly_across(sum, s, across, k.strides.row, live, (int)shape.depth);
                    } else {
                        const float by = odd_values || odd_results ? fuse_enlarge(s) : 1.0f;
                        const auto split = [&](unsigned (&parts)[3][4], int step) { fuse_split_step(parts, step, [&](int i) { return s[i]; }); };
                        const auto add = [&](float& to, float of, int, int) { to = __fmaf_rn(of, by, to); };
                        fuse_add_thirds_across<D, 2>(sum, way.parts(keys), split, add, [](int) {});
                    }
                    way.release(keys);
                };
                int block = tile.blocks - 1;
                // Blocks behind all queries of this group are there for the other one.
                for (; CAUSAL && block * TN > first + 63; --block)
                    for (int matrix = 0; matrix < 2; ++matrix) way.release(way.take());
#pragma unroll 1
                for (; block >= 0; --block) step(block);
#pragma unroll
                for (int r = 0; r < 2; ++r)
                    if (m + 8 * r < (int)shape.m) fuse_put_line(tile.in(to, to_strides, m + 8 * r), (int)shape.depth, sum, r, factor);
            }
        }
    }
};

// dK and dV, for 64 keys a group of GROUPS, by blocks of TM queries.
template <class T, class TO, int D, int DV, int GROUPS, int TM, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT> struct fuse_attention_floats_dkv {
    static_assert(TM == 64, "scores of a block are the sums of one product");
    static constexpr int TN = 64 * GROUPS;
    typedef fuse_third_ring<fuse_back_own<D, DV, GROUPS>, (D > DV ? D : DV), GROUPS> Ring;
    typedef fuse_back_scores<TM / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, true> Scores;
    // TN keys from m on, and blocks of queries from the first one that sees any; the last one is there in any case.
    struct Tile : fuse_query_tile<TN, TM, false> {
        int first;
        __device__ __forceinline__ Tile(int number, const fuse_attention_shape& shape) : fuse_query_tile<TN, TM, false>(number, shape)
        {
            this->blocks = ((int)shape.m + TM - 1) / TM;
            first = CAUSAL ? min(this->m / TM, this->blocks - 1) : 0;
        }
    };

    template <class SCORE, class WEIGHT, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> d_o, const float* lse,
                                               const float* inners, TO* to_k, const fuse_heads& to_k_strides, TO* to_v,
                                               const fuse_heads& to_v_strides, const fuse_attention_shape& shape, unsigned* counters,
                                               float factor, const SCORE& score, const WEIGHT& weight, const OF_WEIGHT& of_weight,
                                               const OF_SCORE& of_score)
    {
        constexpr bool DRAWN = !PLAIN_WEIGHT && fuse_is_kept<WEIGHT>::IS && fuse_is_kept<OF_WEIGHT>::IS;
        typename Ring::Shared& shared = Ring::shared();
        if (threadIdx.x < 128) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
            typename Ring::Feeder feeder = {shared, shape};
            feeder.template run<Tile>(counters, [&](auto& feeder, const Tile& tile, int block) {
                const int m = block * TM, rows = (int)shape.m - m;
                const long long before = fuse_rows_before(tile.batch, shape) + m;
                feeder.template bring<D>(tile.in(q.from, q.strides, m), q.strides.row, rows, (int)shape.depth, lse + before);
                feeder.template bring<DV>(tile.in(d_o.from, d_o.strides, m), d_o.strides.row, rows, (int)shape.columns, inners + before, [&](auto& slot) {
                    if constexpr (DRAWN) feeder.bring_kept_queries(slot, weight, tile.batch, m, tile.m);
                });
            });
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
            const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, line = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
            const int last_n = (int)shape.n - 1;
            fuse_third_left<D>& keys = shared.own.first[group];
            fuse_third_left<DV>& values = shared.own.second[group];
            typename Ring::Way way = {shared};
            for (;;) {
                const int number = way.tile();
                if (number >= shape.tiles * shape.heads) break;
                const Tile tile(number, shape);
                const int first = tile.m + group * 64, n = tile.m + line, rows[2] = {min(n, last_n), min(n + 8, last_n)};
                const bool odd_keys = keys.take(tile.in(k.from, k.strides, n), k.strides.row, (int)shape.n - n, (int)shape.depth);
                const bool odd_values = values.take(tile.in(v.from, v.strides, n), v.strides.row, (int)shape.n - n, (int)shape.columns);
                float s[TM / 2], products[TM / 2], d[TM / 2], of_keys[D / 2] = {}, of_values[DV / 2] = {};
                // What a block adds.
                const auto step = [&](int block) {
                    const int m = block * TM, live = (int)shape.m - m;
                    const Scores scores = {shape, tile.batch, lse, m + lane % 4 * 2, n};
                    const auto plainly = [&](float (&product)[TM / 2], const fuse_matrices<T>& left, const fuse_matrices<T>& right, long long depth) {
                        fuse_multiply_plainly(product, tile.in(left.from, left.strides, rows[0]), tile.in(left.from, left.strides, rows[1]),
                                              tile.in(right.from, right.strides, m), right.strides.row, live, (int)depth);
                    };
                    const unsigned queries = way.take();
                    const bool odd_queries = way.is_odd(queries);
                    fuse_third_product<D, 2> of_queries(keys, way.parts(queries));
                    of_queries.begin(s);
                    of_queries.end(s);
                    if (odd_keys || odd_queries) plainly(s, k, q, shape.depth);
                    const unsigned results = way.take();
                    const bool odd_results = way.is_odd(results);
                    // There are no registers for more sums.
                    fuse_third_product<DV, 1> of_results(values, way.parts(results));
                    of_results.begin(d);
                    const auto lse_of = [&](int i) { return way.number(queries, i); };
                    if (live < TM || (CAUSAL && m < first + 63)) scores.template to_weights<true>(s, products, factor, lse_of, score);
                    else scores.template to_weights<false>(s, products, factor, lse_of, score);
                    typename Ring::Kept kept;
                    if (DRAWN) kept.take(shared.slot[results], line);
                    of_results.end(d);
                    if (odd_values || odd_results) plainly(d, v, d_o, shape.columns);
                    const auto multiply = [&](const auto& program, int i, float x) {
                        if constexpr (DRAWN) return x * (kept.has(i) ? program.scale : 0.0f);
                        else return PLAIN_WEIGHT ? x : scores.run(program, i, x);
                    };
                    const auto weight_of = [&](int i) { return multiply(weight, i, s[i]); };
                    // The gradients of eight products.
                    const auto to_gradients = [&](int step) {
#pragma unroll
                        for (int i = 8 * step; i < 8 * step + 8; ++i) {
                            d[i] = s[i] * (multiply(of_weight, i, d[i]) - way.number(results, i));
                            if (!PLAIN) d[i] = scores.to_product(of_score, i, d[i], products[i]);
                        }
                    };
                    if (odd_results) {
#pragma unroll
                        for (int step = 0; step < 4; ++step) to_gradients(step);
#pragma unroll
                        for (int i = 0; i < TM / 2; ++i) s[i] = weight_of(i);
                        fuse_add_plainly_across(of_values, s, tile.in(d_o.from, d_o.strides, m), d_o.strides.row, live, (int)shape.columns);
                    } else {
                        const auto split = [&](unsigned (&parts)[3][4], int step) { fuse_split_step(parts, step, weight_of); };
                        const auto add = [&](float& to, float of, int, int) { to += of; };
                        fuse_add_thirds_across<DV, 1>(of_values, way.parts(results), split, add, to_gradients);
                    }
                    way.release(results);
                    if (odd_queries) {
                        fuse_add_plainly_across(of_keys, d, tile.in(q.from, q.strides, m), q.strides.row, live, (int)shape.depth);
                    } else {
                        const float by = odd_values || odd_results ? fuse_enlarge(d) : 1.0f;
                        const auto split = [&](unsigned (&parts)[3][4], int step) { fuse_split_step(parts, step, [&](int i) { return d[i]; }); };
                        const auto add = [&](float& to, float of, int, int) { to = __fmaf_rn(of, by, to); };
                        fuse_add_thirds_across<D, 2>(of_keys, way.parts(queries), split, add, [](int) {});
                    }
                    way.release(queries);
                };
#pragma unroll 1
                for (int block = tile.blocks - 1; block >= tile.first; --block) step(block);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    if (n + 8 * r >= (int)shape.n) continue;
                    fuse_put_line(tile.in(to_k, to_k_strides, n + 8 * r), (int)shape.depth, of_keys, r, factor);
                    fuse_put_line(tile.in(to_v, to_v_strides, n + 8 * r), (int)shape.columns, of_values, r, 1.0f);
                }
            }
        }
    }
};
#endif
