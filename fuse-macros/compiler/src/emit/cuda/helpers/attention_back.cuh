#if defined(HEAD_KEYS)
// The way back through attention without its matrix of weights: they are computed again from queries, keys and the logarithm of
// each row's sum of exponentials (Dao et al., "FlashAttention", 2022). With weights P, what values are multiplied by W (P where
// nothing is dropped), scores S and the result O = W V:
//   dV = W^T dO,   dW = dO V^T,   dS = P (dP - d) where d = rowsum(P dP) = rowsum(O dO),   dQ = dS K,   dK = dS^T Q.
// One kernel goes through the keys of some queries, for dQ and d, another one through the queries of some keys, for dK and dV; so
// every sum has one order. What a block of threads is, and how it takes its tiles, is as on the way forward.

// What a kernel's warpgroups tell each other: rows of the tile itself ("own") are there or done with, and stages of a ring are.
template <int GROUPS, int STAGES> struct fuse_back_turns {
    static constexpr int OWN_FULL = 0, OWN_EMPTY = 8, FULL = 16, EMPTY = FULL + 8 * STAGES, TILE = EMPTY + 8 * STAGES, NEXT = TILE + 4,
                         BYTES = NEXT + 4;
    unsigned room;

    __device__ __forceinline__ void open() const
    {
        fuse_barrier(room + OWN_FULL, 128 + 1);
        fuse_barrier(room + OWN_EMPTY, 4 * GROUPS);
        for (int s = 0; s < STAGES; ++s) {
            fuse_barrier(room + FULL + 8 * s, 128);
            fuse_barrier(room + EMPTY + 8 * s, 4 * GROUPS);
        }
    }

    __device__ __forceinline__ volatile int* numbers() const { return (volatile int*)__cvta_shared_to_generic(room + TILE); }

    // The warpgroup that copies: the rows of a tile, and blocks of the others from the last one on, tile after tile.
    template <class TILE_AT, class OWN, class BLOCK>
    __device__ __forceinline__ void produce(const fuse_attention_shape& shape, unsigned* counters, const TILE_AT& at, const OWN& own,
                                            const BLOCK& copy) const
    {
        fuse_lap<STAGES> ring;
        const int total = shape.tiles * shape.heads;
        int number = blockIdx.x;
        for (unsigned phase = 1;; phase ^= 1) {
            fuse_await(room + OWN_EMPTY, phase);
            if (threadIdx.x == 0) {
                numbers()[0] = number;
                fuse_arrive(room + OWN_FULL);
            }
            if (number >= total) break;
            const auto tile = at(number);
            own(tile);
            fuse_arrive_behind_copies(room + OWN_FULL);
            int next = 0;
            if (threadIdx.x == 0) next = gridDim.x + atomicAdd(counters, 1u);
            for (int block = tile.blocks - 1; block >= tile.first; --block, ring.next()) {
                fuse_await(room + EMPTY + 8 * ring.stage, ring.parity ^ 1);
                copy(tile, block, (int)ring.stage);
                fuse_arrive_behind_copies(room + FULL + 8 * ring.stage);
            }
            if (threadIdx.x == 0) numbers()[1] = next;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            number = numbers()[1];
            asm volatile("bar.sync 1, 128;" ::: "memory");
        }
        fuse_arrive_behind_copies(room + OWN_FULL);
        // The last block to leave lets the counters be 0 again.
        if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = counters[1] = 0;
    }

    // A warp is done with what a barrier is about.
    __device__ __forceinline__ void release(int barrier) const
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0) fuse_arrive(room + barrier);
    }
};

// dQ and d, for 64 queries a group of GROUPS, by blocks of TN keys; D and DV are the depth of queries and the columns of values,
// rounded up to a multiple of 32. The flags are those of the way forward.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT> struct fuse_attention_dq {
    static constexpr int TM = 64 * GROUPS, STAGES = 3;
    static constexpr bool STAYS = 2 * TN + 3 * D + DV <= 384;
    static constexpr int K_BYTES = TN * D * 2, V_BYTES = TN * DV * 2;
    static constexpr int DO_AT = TM * D * 2, K_AT = DO_AT + TM * DV * 2, V_AT = K_AT + STAGES * K_BYTES, TURNS = V_AT + STAGES * V_BYTES;
    typedef fuse_back_turns<GROUPS, STAGES> Turns;
    typedef fuse_back_scores<TN / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, false> Scores;
    struct Tile : fuse_query_tile<TM, TN, CAUSAL> {
        using fuse_query_tile<TM, TN, CAUSAL>::fuse_query_tile;
        static constexpr int first = 0;
    };

    template <class SCORE, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> o, fuse_matrices<T> d_o,
                                               const float* logs, float* inners, TO* to, const fuse_heads& to_strides,
                                               const fuse_attention_shape& shape, unsigned* counters, float factor, const SCORE& score,
                                               const OF_WEIGHT& of_weight, const OF_SCORE& of_score)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 1023) / 1024 * 1024;
        const Turns turns = {room + TURNS};
        if (threadIdx.x == 0) turns.open();
        __syncthreads();
        if (threadIdx.x < 128) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
            const auto at = [&](int number) { return Tile(number, shape); };
            const auto own = [&](const Tile& tile) {
                const int rows = (int)shape.m - tile.m;
                fuse_copy_rows<TM, D>(room, tile.in(q.from, q.strides, tile.m), q.strides.row, rows, (int)shape.depth);
                fuse_copy_rows<TM, DV>(room + DO_AT, tile.in(d_o.from, d_o.strides, tile.m), d_o.strides.row, rows, (int)shape.columns);
            };
            turns.produce(shape, counters, at, own, [&](const Tile& tile, int block, int stage) {
                const int n = block * TN, rows = (int)shape.n - n;
                fuse_copy_rows<TN, D>(room + K_AT + stage * K_BYTES, tile.in(k.from, k.strides, n), k.strides.row, rows, (int)shape.depth);
                fuse_copy_rows<TN, DV>(room + V_AT + stage * V_BYTES, tile.in(v.from, v.strides, n), v.strides.row, rows, (int)shape.columns);
            });
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
            const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
            fuse_left<T, TM, D, STAYS> queries;
            fuse_left<T, TM, DV, STAYS> of_results;
            fuse_group_turns<GROUPS>::open(group);
            fuse_lap<STAGES> ring;
            for (unsigned phase = 0;; phase ^= 1) {
                fuse_await(turns.room + Turns::OWN_FULL, phase);
                const int number = turns.numbers()[0];
                if (number >= shape.tiles * shape.heads) break;
                const Tile tile(number, shape);
                const int first = tile.m + group * 64, m = first + warp * 16 + lane / 4;
                float s[TN / 2], products[TN / 2], d[TN / 2], sum[D / 2] = {}, line_log[2] = {}, line_inner[2] = {};
                unsigned narrow[TN / 4];
                const auto scores = [&](int block) { return Scores{shape, tile.batch, logs, m, block * TN + lane % 4 * 2}; };
                const auto log_of = [&](int i) { return line_log[i / 2 % 2]; };
                const auto inner_of = [&](int i) { return line_inner[i / 2 % 2]; };
                const auto await_block = [&] {
                    fuse_await(turns.room + Turns::FULL + 8 * ring.stage, ring.parity);
                    fuse_show_to_products();
                };
                const auto multiply = [&] {
                    queries.multiply(s, room + K_AT + ring.stage * K_BYTES);
                    of_results.multiply(d, room + V_AT + ring.stage * V_BYTES);
                };
                fuse_multipliers<TN / 2, false, OF_WEIGHT> by = {of_weight};
                int block = tile.blocks - 1;
                scores(block).look(by);
                queries.take(room, group);
                of_results.take(room + DO_AT, group);
                if (STAYS) turns.release(Turns::OWN_EMPTY);
                await_block();
                multiply();
                const long long before = fuse_rows_before(tile.batch, shape);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int row = min(m + 8 * r, (int)shape.m - 1);
                    line_log[r] = logs[before + row];
                    line_inner[r] = fuse_inner<DV>(tile.in(o.from, o.strides, row), tile.in(d_o.from, d_o.strides, row), (int)shape.columns);
                    if (lane % 4 == 0 && m + 8 * r < (int)shape.m) inners[before + row] = line_inner[r];
                }
                fuse_products_wait<1>();
                fuse_hold(s);
                scores(block).template to_weights<true>(s, products, factor, log_of, score);
                fuse_products_wait<0>();
                fuse_hold(d);
                scores(block).to_gradients(s, d, products, inner_of, by, of_score);
                fuse_narrow<T>(narrow, s);
                int last = ring.stage;
                ring.next();
                // The gradients of a block, and the sum of the one before.
                const auto step = [&](auto edge) {
                    scores(block).look(by);
                    await_block();
                    fuse_group_turns<GROUPS>::await(group);
                    multiply();
                    fuse_multiply_across<T, TN, D>(sum, narrow, room + K_AT + last * K_BYTES);
                    fuse_group_turns<GROUPS>::pass(group);
                    fuse_products_wait<2>();
                    fuse_hold(s);
                    scores(block).template to_weights<decltype(edge)::value>(s, products, factor, log_of, score);
                    fuse_products_wait<1>();
                    fuse_hold(d);
                    scores(block).to_gradients(s, d, products, inner_of, by, of_score);
                    fuse_hold(s);
                    fuse_products_wait<0>();
                    fuse_hold(sum);
                    turns.release(Turns::EMPTY + 8 * last);
                    fuse_narrow<T>(narrow, s);
                    last = ring.stage;
                    ring.next();
                };
                --block;
                if (CAUSAL)
                    for (; block >= 0 && block * TN + TN - 1 > first; --block) step(fuse_bool<true>());
                for (; block >= 0; --block) step(fuse_bool<false>());
                if (!STAYS) turns.release(Turns::OWN_EMPTY);
                fuse_multiply_across<T, TN, D>(sum, narrow, room + K_AT + last * K_BYTES);
                fuse_products_wait<0>();
                fuse_hold(sum);
                turns.release(Turns::EMPTY + 8 * last);
#pragma unroll
                for (int i = 0; i < D / 2; ++i) sum[i] *= factor;
#pragma unroll
                for (int r = 0; r < 2; ++r)
                    fuse_put_row(tile.in(to, to_strides, m + 8 * r), m + 8 * r < (int)shape.m ? (int)shape.depth : 0, sum, r);
            }
        }
    }
};

// dK and dV, for 64 keys a group of GROUPS, by blocks of TM queries.
template <class T, class TO, int D, int DV, int GROUPS, int TM, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT> struct fuse_attention_dkv {
    static constexpr int TN = 64 * GROUPS, STAGES = 3;
    // Where there are registers for it, products with the weights of a block run while those of the next one are computed.
    static constexpr bool AHEAD = D + DV + 3 * TM <= 352, STAYS = D + DV <= 128;
    static constexpr int Q_BYTES = TM * D * 2, DO_BYTES = TM * DV * 2, ROW_BYTES = TM * 8;
    static constexpr int V_AT = TN * D * 2, Q_AT = V_AT + TN * DV * 2, DO_AT = Q_AT + STAGES * Q_BYTES, ROWS_AT = DO_AT + STAGES * DO_BYTES,
                         TURNS = ROWS_AT + STAGES * ROW_BYTES;
    typedef fuse_back_turns<GROUPS, STAGES> Turns;
    typedef fuse_back_scores<TM / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, true> Scores;
    // TN keys from m on, and blocks of queries from the first one that sees any.
    struct Tile : fuse_query_tile<TN, TM, false> {
        int first;
        __device__ __forceinline__ Tile(int number, const fuse_attention_shape& shape) : fuse_query_tile<TN, TM, false>(number, shape)
        {
            first = CAUSAL ? this->m / TM : 0;
            this->blocks = ((int)shape.m + TM - 1) / TM;
        }
    };

    template <class SCORE, class WEIGHT, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> d_o, const float* logs,
                                               const float* inners, TO* to_k, const fuse_heads& to_k_strides, TO* to_v,
                                               const fuse_heads& to_v_strides, const fuse_attention_shape& shape, unsigned* counters,
                                               float factor, const SCORE& score, const WEIGHT& weight, const OF_WEIGHT& of_weight,
                                               const OF_SCORE& of_score)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 1023) / 1024 * 1024;
        const Turns turns = {room + TURNS};
        if (threadIdx.x == 0) turns.open();
        __syncthreads();
        if (threadIdx.x < 128) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
            const auto at = [&](int number) { return Tile(number, shape); };
            const auto own = [&](const Tile& tile) {
                const int rows = (int)shape.n - tile.m;
                fuse_copy_rows<TN, D>(room, tile.in(k.from, k.strides, tile.m), k.strides.row, rows, (int)shape.depth);
                fuse_copy_rows<TN, DV>(room + V_AT, tile.in(v.from, v.strides, tile.m), v.strides.row, rows, (int)shape.columns);
            };
            turns.produce(shape, counters, at, own, [&](const Tile& tile, int block, int stage) {
                const int m = block * TM, rows = (int)shape.m - m;
                const long long before = fuse_rows_before(tile.batch, shape) + m;
                const unsigned numbers = room + ROWS_AT + stage * ROW_BYTES;
                fuse_copy_rows<TM, D>(room + Q_AT + stage * Q_BYTES, tile.in(q.from, q.strides, m), q.strides.row, rows, (int)shape.depth);
                fuse_copy_rows<TM, DV>(room + DO_AT + stage * DO_BYTES, tile.in(d_o.from, d_o.strides, m), d_o.strides.row, rows, (int)shape.columns);
                fuse_copy_numbers<TM>(numbers, logs + before, rows, 0);
                fuse_copy_numbers<TM>(numbers + TM * 4, inners + before, rows, TM % 128);
            });
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
            const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
            fuse_left<T, TN, D, STAYS> keys;
            fuse_left<T, TN, DV, STAYS> values;
            if (AHEAD) fuse_group_turns<GROUPS>::open(group);
            fuse_lap<STAGES> ring;
            for (unsigned phase = 0;; phase ^= 1) {
                fuse_await(turns.room + Turns::OWN_FULL, phase);
                const int number = turns.numbers()[0];
                if (number >= shape.tiles * shape.heads) break;
                const Tile tile(number, shape);
                const int first = tile.m + group * 64, n = first + warp * 16 + lane / 4;
                float s[TM / 2], products[TM / 2], d[TM / 2], of_keys[D / 2] = {}, of_values[DV / 2] = {};
                unsigned weights[TM / 4], gradients[TM / 4];
                const auto scores = [&](int block) { return Scores{shape, tile.batch, logs, block * TM + lane % 4 * 2, n}; };
                fuse_multipliers<TM / 2, true, WEIGHT> to = {weight};
                fuse_multipliers<TM / 2, true, OF_WEIGHT> of = {of_weight};
                // What is dropped is dropped on the way back, too.
                const auto& by = fuse_first_if_same(to, of);
                const auto look = [&](int block) {
                    scores(block).look(to);
                    if ((const void*)&by != (const void*)&to) scores(block).look(of);
                };
                const auto settle = [&](int block) {
                    scores(block).settle(to);
                    if ((const void*)&by != (const void*)&to) scores(block).settle(of);
                };
                float numbers[TM / 4];
                const auto take_numbers = [&](int from) {
                    const unsigned at = room + ROWS_AT + ring.stage * ROW_BYTES + from * 4 + lane % 4 * 8;
#pragma unroll
                    for (int j = 0; j < TM / 8; ++j)
                        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(numbers[2 * j]), "=f"(numbers[2 * j + 1]) : "r"(at + j * 32) : "memory");
                };
                const auto log_of = [&](int i) { return numbers[i / 4 * 2 + i % 2]; };
                const auto inner_of = [&](int i) { return numbers[i / 4 * 2 + i % 2]; };
                const auto await_block = [&] {
                    fuse_await(turns.room + Turns::FULL + 8 * ring.stage, ring.parity);
                    fuse_show_to_products();
                };
                const auto multiply_keys = [&] { keys.multiply(s, room + Q_AT + ring.stage * Q_BYTES); };
                const auto multiply_values = [&] { values.multiply(d, room + DO_AT + ring.stage * DO_BYTES); };
                const auto add_to_keys = [&](int stage) {
                    fuse_multiply_across<T, TM, D>(of_keys, gradients, room + Q_AT + stage * Q_BYTES);
                };
                const auto add_to_values = [&](int stage) {
                    fuse_multiply_across<T, TM, DV>(of_values, weights, room + DO_AT + stage * DO_BYTES);
                };
                int block = tile.blocks - 1, last = 0;
                keys.take(room, group);
                values.take(room + V_AT, group);
                if (STAYS) turns.release(Turns::OWN_EMPTY);
                // A block by itself.
                const auto alone = [&](auto edge) {
                    look(block);
                    await_block();
                    multiply_keys();
                    multiply_values();
                    take_numbers(0);
                    fuse_products_wait<1>();
                    fuse_hold(s);
                    settle(block);
                    scores(block).template to_weights<decltype(edge)::value>(s, products, factor, log_of, score);
                    scores(block).template narrow<T>(weights, s, to);
                    if (!AHEAD) add_to_values(ring.stage);
                    take_numbers(TM);
                    fuse_products_wait<AHEAD ? 0 : 1>();
                    fuse_hold(d);
                    scores(block).to_gradients(s, d, products, inner_of, by, of_score);
                    fuse_narrow<T>(gradients, s);
                    if (!AHEAD) {
                        add_to_keys(ring.stage);
                        fuse_products_wait<0>();
                        fuse_hold(of_values);
                        fuse_hold(of_keys);
                        turns.release(Turns::EMPTY + 8 * ring.stage);
                    }
                    last = ring.stage;
                    ring.next();
                };
                // The weights and gradients of a block, and the sums of the one before.
                const auto step = [&](auto edge) {
                    if (!AHEAD) return alone(edge);
                    look(block);
                    await_block();
                    fuse_group_turns<GROUPS>::await(group);
                    multiply_keys();
                    add_to_values(last);
                    multiply_values();
                    add_to_keys(last);
                    fuse_group_turns<GROUPS>::pass(group);
                    take_numbers(0);
                    fuse_products_wait<3>();
                    fuse_hold(s);
                    settle(block);
                    scores(block).template to_weights<decltype(edge)::value>(s, products, factor, log_of, score);
                    fuse_hold(s);
                    fuse_products_wait<2>();
                    fuse_hold(of_values);
                    scores(block).template narrow<T>(weights, s, to);
                    take_numbers(TM);
                    fuse_products_wait<1>();
                    fuse_hold(d);
                    scores(block).to_gradients(s, d, products, inner_of, by, of_score);
                    fuse_hold(s);
                    fuse_products_wait<0>();
                    fuse_hold(of_keys);
                    turns.release(Turns::EMPTY + 8 * last);
                    fuse_narrow<T>(gradients, s);
                    last = ring.stage;
                    ring.next();
                };
                if (block >= tile.first) {
                    alone(fuse_bool<true>());
                    --block;
                    for (; block >= tile.first && (!CAUSAL || block * TM >= first + 63); --block) step(fuse_bool<false>());
                    if (CAUSAL)
                        for (; block >= tile.first; --block) step(fuse_bool<true>());
                    if (AHEAD) {
                        add_to_values(last);
                        add_to_keys(last);
                        fuse_products_wait<0>();
                        fuse_hold(of_values);
                        fuse_hold(of_keys);
                        turns.release(Turns::EMPTY + 8 * last);
                    }
                }
                if (!STAYS) turns.release(Turns::OWN_EMPTY);
#pragma unroll
                for (int i = 0; i < D / 2; ++i) of_keys[i] *= factor;
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const bool live = n + 8 * r < (int)shape.n;
                    fuse_put_row(tile.in(to_k, to_k_strides, n + 8 * r), live ? (int)shape.depth : 0, of_keys, r);
                    fuse_put_row(tile.in(to_v, to_v_strides, n + 8 * r), live ? (int)shape.columns : 0, of_values, r);
                }
            }
        }
    }
};
#endif
