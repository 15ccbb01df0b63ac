#if defined(HEAD_KEYS)
// Attention in one kernel: softmax(scores) V by blocks of keys, with the largest score and the sum of a row as far as they are known,
// and what was added up so far scaled down when a larger score comes (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022; Dao, "FlashAttention-2", 2023).
//
// A block of threads is a warpgroup that copies and GROUPS that multiply, each for 64 queries. They take turns: while the scores of
// one go through the softmax, tensor cores work for another, and each multiplies its next scores and its last values in one go
// (Shah et al., "FlashAttention-3", 2024). Blocks stay and take the next tile of queries from a counter, so that copies for it run
// while the last one is written. Where a last round of tiles would leave most multiprocessors without one, what is left of each head
// are small tiles of the queries of one group, whose blocks of keys the groups take in turn.

// Queries and keys are D deep, values have DV columns; both are rounded up to a multiple of 32, with zeros. TN keys are a block.
// CAUSAL: no key behind a query. ZERO: a row without keys is 0, and not NaN. PLAIN: a score is the product as it is. KEEPS: the
// logarithms of the sums of exponentials are stored, one a row, for the way back; they are inf for rows without keys.
// PLAIN_WEIGHT: nothing becomes of a weight before the second product.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool CAUSAL, bool ZERO, bool PLAIN, bool KEEPS, bool PLAIN_WEIGHT>
struct fuse_attention {
    static constexpr int TM = 64 * GROUPS, STAGES = 2, COPIERS = 128;
    // Where there are registers for them, queries stay there, so that the next ones are on their way early.
    static constexpr bool STAYS = D <= 64 && GROUPS <= 2;
    // Shared memory: queries, rings of blocks of keys and of values, barriers, the number of the tile and of the next one.
    static constexpr int K_BYTES = TN * D * 2, V_BYTES = TN * DV * 2;
    static constexpr int K_AT = TM * D * 2, V_AT = K_AT + STAGES * K_BYTES, Q_FULL = V_AT + STAGES * V_BYTES;
    static constexpr int Q_EMPTY = Q_FULL + 8, K_FULL = Q_EMPTY + 8, K_EMPTY = K_FULL + 8 * STAGES,
                         V_FULL = K_EMPTY + 8 * STAGES, V_EMPTY = V_FULL + 8 * STAGES, TILE = V_EMPTY + 8 * STAGES, NEXT = TILE + 4;
    // Where there are small tiles: what each group but the first has of one, numbers of a thread 128 floats apart.
    static constexpr bool HAS_SMALL = GROUPS == 3 && !CAUSAL;
    static constexpr int OTHERS = NEXT + 4, OTHER_FLOATS = 128 * (DV / 2 + 4);
    static __device__ __forceinline__ float never() { return __int_as_float(0xff800000); }

    // Whole tiles of all heads come first.
    struct Tile : fuse_query_tile<TM, TN, CAUSAL> {
        typedef fuse_query_tile<TM, TN, CAUSAL> Any;
        bool is_small;

        __device__ __forceinline__ Tile(int number, const fuse_attention_shape& shape)
            : Any(HAS_SMALL ? of(number, shape) : Any(number, shape)), is_small(HAS_SMALL && number >= shape.whole * shape.heads)
        {
            if (is_small) this->m = shape.whole * TM + this->m / GROUPS;
        }

        static __device__ __forceinline__ Any of(int number, const fuse_attention_shape& shape)
        {
            const int small = number - shape.whole * shape.heads;
            return small < 0 ? Any(number, shape, shape.whole) : Any(small, shape, shape.tiles - shape.whole);
        }

        // The queries from the first one on that there are.
        __device__ __forceinline__ int live(const fuse_attention_shape& shape) const
        {
            return min((int)shape.m - this->m, is_small ? 64 : TM);
        }
    };

    // The warpgroup that copies: blocks of keys and values from the last one on, tile after tile.
    static __device__ __forceinline__ void produce(unsigned room, const fuse_matrices<T>& q, const fuse_matrices<T>& k,
                                                   const fuse_matrices<T>& v, const fuse_attention_shape& shape, unsigned* counters)
    {
        fuse_lap<STAGES> ring;
        volatile int* const numbers = (volatile int*)__cvta_shared_to_generic(room + TILE);
        const int total = shape.tiles * shape.heads;
        int number = blockIdx.x;
        for (unsigned phase = 1;; phase ^= 1) {
            fuse_await(room + Q_EMPTY, phase);
            if (threadIdx.x == 0) {
                numbers[0] = number;
                fuse_arrive(room + Q_FULL);
            }
            if (number >= total) break;
            const Tile tile(number, shape);
            fuse_copy_rows<TM, D>(room, tile.in(q.from, q.strides, tile.m), q.strides.row, tile.live(shape), (int)shape.depth);
            fuse_arrive_behind_copies(room + Q_FULL);
            int next = 0;
            if (threadIdx.x == 0) next = gridDim.x + atomicAdd(counters, 1u);
            for (int block = tile.blocks - 1; block >= 0; --block, ring.next()) {
                const int n = block * TN, live = (int)shape.n - n, stage = ring.stage;
                fuse_await(room + K_EMPTY + 8 * stage, ring.parity ^ 1);
                fuse_copy_rows<TN, D>(room + K_AT + stage * K_BYTES, tile.in(k.from, k.strides, n), k.strides.row, live, (int)shape.depth);
                fuse_arrive_behind_copies(room + K_FULL + 8 * stage);
                fuse_await(room + V_EMPTY + 8 * stage, ring.parity ^ 1);
                fuse_copy_rows<TN, DV>(room + V_AT + stage * V_BYTES, tile.in(v.from, v.strides, n), v.strides.row, live, (int)shape.columns);
                fuse_arrive_behind_copies(room + V_FULL + 8 * stage);
            }
            if (threadIdx.x == 0) numbers[1] = next;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            number = numbers[1];
            asm volatile("bar.sync 1, 128;" ::: "memory");
        }
        fuse_arrive_behind_copies(room + Q_FULL);
        // The last block to leave lets the counters be 0 again.
        if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = counters[1] = 0;
    }

    // The softmax of a thread's two rows as far as it has come, and by what the last larger score scales what was before it.
    struct Rows { float largest[2], sum[2], scale[2]; };

    // Scores become exponentials. EDGE: there may be keys that are none, or that are behind the query.
    template <bool EDGE, class SCORE, class WEIGHT>
    static __device__ __forceinline__ void soften(float (&s)[TN / 2], Rows& rows, const Tile& tile, int m, int n,
                                                  const fuse_attention_shape& shape, float to_exp2, const SCORE& score, const WEIGHT& multipliers)
    {
        if (!PLAIN || EDGE) {
#pragma unroll
            for (int i = 0; i < TN / 2; ++i) {
                const int row = m + i / 2 % 2 * 8, column = n + i / 4 * 8 + i % 2;
                // Places that are none read like the last one that is.
                if (!PLAIN) s[i] = score(tile.batch, s[i], min(row, (int)shape.m - 1), EDGE ? min(column, (int)shape.n - 1) : column);
                if (EDGE && (column >= (int)shape.n || (CAUSAL && column > row))) s[i] = never();
            }
        }
        // Several chains at a time, since a warp has its scheduler almost for itself.
        constexpr int CHAINS = 4;
        static_assert(TN / 8 >= CHAINS, "a chain has a pair of columns or more");
        float part[2][CHAINS], shift[2];
#pragma unroll
        for (int j = 0; j < TN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float two = fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]);
                part[r][j % CHAINS] = j < CHAINS ? two : fmaxf(part[r][j % CHAINS], two);
            }
#pragma unroll
        for (int r = 0; r < 2; ++r) part[r][0] = fmaxf(fmaxf(part[r][0], part[r][1]), fmaxf(part[r][2], part[r][3]));
#pragma unroll
        for (int stride = 1; stride < 4; stride *= 2)
#pragma unroll
            for (int r = 0; r < 2; ++r) part[r][0] = fmaxf(part[r][0], __shfl_xor_sync(~0u, part[r][0], stride));
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            part[r][0] = fmaxf(rows.largest[r], part[r][0]);
            shift[r] = part[r][0] == never() ? 0.0f : part[r][0] * to_exp2;
            rows.scale[r] = fuse_exp2(__fmaf_rn(rows.largest[r], to_exp2, -shift[r]));
        }
        // Where scores are so large that the rounding of the exponent of 2 would be seen, the largest is subtracted first.
        if (__any_sync(~0u, !(fmaxf(fabsf(shift[0]), fabsf(shift[1])) < 4096.0f))) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float largest = part[r][0] == never() ? 0.0f : part[r][0];
                rows.scale[r] = fuse_exp2((rows.largest[r] - largest) * to_exp2);
                shift[r] = 0.0f;
#pragma unroll
                for (int j = 0; j < TN / 4; ++j) s[j / 2 * 4 + 2 * r + j % 2] -= largest;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) rows.largest[r] = part[r][0];
#pragma unroll
        for (int j = 0; j < TN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float* const pair = s + 4 * j + 2 * r;
                pair[0] = fuse_exp2(__fmaf_rn(pair[0], to_exp2, -shift[r]));
                pair[1] = fuse_exp2(__fmaf_rn(pair[1], to_exp2, -shift[r]));
                const float two = pair[0] + pair[1];
                part[r][j % CHAINS] = j < CHAINS ? two : part[r][j % CHAINS] + two;
            }
#pragma unroll
        for (int r = 0; r < 2; ++r)
            rows.sum[r] = __fmaf_rn(rows.sum[r], rows.scale[r], (part[r][0] + part[r][1]) + (part[r][2] + part[r][3]));
#pragma unroll
        for (int i = 0; !PLAIN_WEIGHT && i < TN / 2; ++i) {
            const int row = m + i / 2 % 2 * 8, column = n + i / 4 * 8 + i % 2;
            s[i] = multipliers.apply(tile.batch, i, s[i], min(row, (int)shape.m - 1), EDGE ? min(column, (int)shape.n - 1) : column);
        }
    }

    static __device__ __forceinline__ void rescale(float (&o)[DV / 2], const Rows& rows)
    {
#pragma unroll
        for (int i = 0; i < DV / 2; ++i) o[i] *= rows.scale[i / 2 % 2];
    }

    // Writes a thread's two rows, of which `settle` ends the sums.
    template <class SETTLE>
    static __device__ __forceinline__ void write(const Tile& tile, const fuse_attention_shape& shape, float (&o)[DV / 2], Rows& rows, int m, TO* to,
                                                 const fuse_heads& to_strides, float* logs, float factor, const SETTLE& settle)
    {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) rows.sum[r] += __shfl_xor_sync(~0u, rows.sum[r], stride);
            rows.scale[r] = ZERO && rows.sum[r] == 0.0f ? 0.0f : 1.0f / rows.sum[r];
            if (KEEPS && threadIdx.x % 4 == 0 && m + 8 * r < (int)shape.m)
                fuse_put_log<ZERO>(logs, shape, tile.batch, m + 8 * r, rows.largest[r], factor, rows.sum[r]);
        }
        settle();
        rescale(o, rows);
#pragma unroll
        for (int r = 0; r < 2; ++r)
            fuse_put_row(tile.in(to, to_strides, m + 8 * r), m + 8 * r < (int)shape.m ? (int)shape.columns : 0, o, r);
    }

    // What the groups have of a small tile becomes one, which the first has; the others leave theirs in shared memory.
    static __device__ __forceinline__ void join(unsigned room, int group, float (&o)[DV / 2], Rows& rows, float to_exp2)
    {
        float* const others = (float*)__cvta_shared_to_generic(room + OTHERS) + threadIdx.x % 128;
        if (group > 0) {
            float* const own = others + (group - 1) * OTHER_FLOATS;
#pragma unroll
            for (int r = 0; r < 2; ++r) own[r * 128] = rows.largest[r], own[(2 + r) * 128] = rows.sum[r];
#pragma unroll
            for (int i = 0; i < DV / 2; ++i) own[(4 + i) * 128] = o[i];
        }
        asm volatile("bar.sync 5, %0;" :: "n"(GROUPS * 128) : "memory");
#pragma unroll 1
        for (int k = 0; group == 0 && k < GROUPS - 1; ++k) {
            const float* const other = others + k * OTHER_FLOATS;
            float by[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float largest = fmaxf(rows.largest[r], other[r * 128]), none = largest == never() ? 0.0f : largest;
                rows.scale[r] = fuse_exp2((rows.largest[r] - none) * to_exp2);
                by[r] = fuse_exp2((other[r * 128] - none) * to_exp2);
                rows.sum[r] = __fmaf_rn(other[(2 + r) * 128], by[r], rows.sum[r] * rows.scale[r]);
                rows.largest[r] = largest;
            }
#pragma unroll
            for (int i = 0; i < DV / 2; ++i) o[i] = __fmaf_rn(other[(4 + i) * 128], by[i / 2 % 2], o[i] * rows.scale[i / 2 % 2]);
        }
        asm volatile("bar.sync 5, %0;" :: "n"(GROUPS * 128) : "memory");
    }

    // A warpgroup that multiplies.
    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void consume(unsigned room, const fuse_attention_shape& shape, TO* to, const fuse_heads& to_strides,
                                                   float* logs, float factor, const SCORE& score, const WEIGHT& weight)
    {
        // exp(x) = 2^(x log2(e))
        const float to_exp2 = factor * 1.44269504f;
        const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        const auto release = [&](unsigned barrier) {
            __syncwarp();
            if (lane == 0) fuse_arrive(room + barrier);
        };
        fuse_left<T, TM, D, STAYS> queries;
        fuse_lap<STAGES> k_ring, v_ring;
        fuse_group_turns<GROUPS>::open(group);
        for (unsigned phase = 0;; phase ^= 1) {
            fuse_await(room + Q_FULL, phase);
            const int number = *(volatile int*)__cvta_shared_to_generic(room + TILE);
            if (number >= shape.tiles * shape.heads) break;
            const Tile tile(number, shape);
            const int part = tile.is_small ? 0 : group;
            queries.take(room, part);
            if (STAYS) release(Q_EMPTY);
            const int first = tile.m + part * 64, m = first + warp * 16 + lane / 4, n = lane % 4 * 2;
            float s[TN / 2], o[DV / 2] = {};
            unsigned p[TN / 4];
            Rows rows = {{never(), never()}, {}, {}};
            fuse_multipliers<TN / 2, false, WEIGHT> multipliers = {weight};
            const auto look = [&](int block) {
                if (!PLAIN_WEIGHT) multipliers.look(tile.batch, m, block * TN + n, (int)shape.m - 1, (int)shape.n - 1);
            };
            int block = tile.blocks - 1;
            // The scores of a block that has no other beside it.
            const auto scores_alone = [&] {
                look(block);
                fuse_await(room + K_FULL + 8 * k_ring.stage, k_ring.parity);
                fuse_show_to_products();
                queries.multiply(s, room + K_AT + k_ring.stage * K_BYTES);
                fuse_products_wait<0>();
                fuse_hold(s);
                release(K_EMPTY + 8 * k_ring.stage);
                k_ring.next();
                soften<true>(s, rows, tile, m, block * TN + n, shape, to_exp2, score, multipliers);
                fuse_narrow<T>(p, s);
            };
            const auto add_values = [&] {
                fuse_await(room + V_FULL + 8 * v_ring.stage, v_ring.parity);
                fuse_show_to_products();
                fuse_multiply_across<T, TN, DV>(o, p, room + V_AT + v_ring.stage * V_BYTES);
            };
            const auto end_values = [&] {
                fuse_products_wait<0>();
                fuse_hold(o);
                release(V_EMPTY + 8 * v_ring.stage);
                v_ring.next();
            };
            const auto skip = [&] {
                fuse_await(room + K_FULL + 8 * k_ring.stage, k_ring.parity);
                release(K_EMPTY + 8 * k_ring.stage);
                k_ring.next();
                fuse_await(room + V_FULL + 8 * v_ring.stage, v_ring.parity);
                release(V_EMPTY + 8 * v_ring.stage);
                v_ring.next();
            };
            if (HAS_SMALL && tile.is_small) {
#pragma unroll 1
                for (int turn = 0; block >= 0; --block, turn = turn == GROUPS - 1 ? 0 : turn + 1) {
                    if (turn != group) {
                        skip();
                        continue;
                    }
                    scores_alone();
                    rescale(o, rows);
                    add_values();
                    end_values();
                }
                if (!STAYS) release(Q_EMPTY);
                join(room, group, o, rows, to_exp2);
                if (group == 0) write(tile, shape, o, rows, m, to, to_strides, logs, factor, [] {});
                continue;
            }
            scores_alone();
            // The scores of a block, and the values of the one before.
            const auto step = [&](auto edge) {
                look(block);
                fuse_await(room + K_FULL + 8 * k_ring.stage, k_ring.parity);
                fuse_await(room + V_FULL + 8 * v_ring.stage, v_ring.parity);
                fuse_show_to_products();
                fuse_group_turns<GROUPS>::await(group);
                queries.multiply(s, room + K_AT + k_ring.stage * K_BYTES);
                fuse_multiply_across<T, TN, DV>(o, p, room + V_AT + v_ring.stage * V_BYTES);
                fuse_group_turns<GROUPS>::pass(group);
                fuse_products_wait<1>();
                fuse_hold(s);
                release(K_EMPTY + 8 * k_ring.stage);
                k_ring.next();
                soften<decltype(edge)::value>(s, rows, tile, m, block * TN + n, shape, to_exp2, score, multipliers);
                fuse_hold(s);
                fuse_products_wait<0>();
                fuse_hold(o);
                release(V_EMPTY + 8 * v_ring.stage);
                v_ring.next();
                fuse_narrow<T>(p, s);
                rescale(o, rows);
            };
            --block;
            if (CAUSAL)
                for (; block >= 0 && block * TN + TN - 1 > first; --block) step(fuse_bool<true>());
            for (; block >= 0; --block) step(fuse_bool<false>());
            if (!STAYS) release(Q_EMPTY);
            add_values();
            write(tile, shape, o, rows, m, to, to_strides, logs, factor, end_values);
        }
    }

    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, TO* to, const fuse_heads& to_strides,
                                               float* logs, const fuse_attention_shape& shape, unsigned* counters, float factor,
                                               const SCORE& score, const WEIGHT& weight)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 1023) / 1024 * 1024;
        if (threadIdx.x == 0) {
            fuse_barrier(room + Q_FULL, COPIERS + 1);
            fuse_barrier(room + Q_EMPTY, 4 * GROUPS);
            for (int s = 0; s < STAGES; ++s) {
                fuse_barrier(room + K_FULL + 8 * s, COPIERS);
                fuse_barrier(room + V_FULL + 8 * s, COPIERS);
                fuse_barrier(room + K_EMPTY + 8 * s, 4 * GROUPS);
                fuse_barrier(room + V_EMPTY + 8 * s, 4 * GROUPS);
            }
        }
        __syncthreads();
        // Registers that copying does not need go to those that multiply.
        if (threadIdx.x < COPIERS) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
            if (GROUPS == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
            produce(room, q, k, v, shape, counters);
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
            if (GROUPS == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
            consume(room, shape, to, to_strides, logs, factor, score, weight);
        }
    }
};
#endif
