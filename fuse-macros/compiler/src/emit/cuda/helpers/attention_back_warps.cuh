#if defined(HEAD_ROWS)
// The way back through attention on every device from compute capability 8.0 on: of halves, by products of single warps (mma.sync).
// What the two kernels compute, and in which order each sum is added up, is what those for Hopper do (see there); as on the way forward
// by warps, a block of four warps has one tile, and each warp 16 rows of it. The rows that go past come by cp.async through a ring of
// STAGES blocks, of which a warp takes N at a time. Weights and their gradients stay in the registers of the warp that made them: as the
// sums of one product lie, the left operand of the next one does.

// Calls `step` with blocks from the last one down to `first`, and where `copy` has brought them: to stages of so many BYTES. Before that
// it calls `take`, once what was copied before is there. OVER: that lies where stages will, and has no room of its own.
template <int STAGES, int BYTES, bool OVER, class TAKE, class COPY, class STEP>
static __device__ __forceinline__ void fuse_over_blocks(unsigned stages, int first, int last, const TAKE& take, const COPY& copy, const STEP& step)
{
    static_assert(STAGES >= 2, "a block comes while another is there");
    asm volatile("cp.async.commit_group;" ::: "memory");
    fuse_lap<STAGES> coming, there;
    int next = last;
    const auto send = [&] {
        if (next >= first) copy(next, stages + coming.stage * BYTES);
        asm volatile("cp.async.commit_group;" ::: "memory");
        --next;
        coming.next();
    };
    if (OVER) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        take();
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) send();
    if (!OVER) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 1) : "memory");
        __syncthreads();
        take();
    }
    for (int block = last; block >= first; --block) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
        // To where all have left.
        send();
        step(block, stages + there.stage * BYTES);
        there.next();
    }
}

// dQ and d, for ROWS queries, by blocks of TN keys; D and DV are the depth of queries and the columns of values, rounded up to a
// multiple of 32. The flags are those of the way forward.
template <class T, class TO, int D, int DV, int ROWS, int TN, int STAGES, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT>
struct fuse_attention_warps_dq {
    static_assert(ROWS == 64, "16 queries a warp");
    static constexpr int N = TN < 32 ? TN : 32, OWN = ROWS * (D + DV) * 2, BYTES = TN * (D + DV) * 2;
    // Where there are registers for it, the block's own rows are there; wide ones leave their memory to the ring.
    static constexpr bool STAYS = 3 * D + DV <= 512, OVER = STAYS && D + DV > 128;
    typedef fuse_query_tile<ROWS, TN, CAUSAL> Tile;
    typedef fuse_back_scores<N / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, false> Scores;

    template <class SCORE, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> o, fuse_matrices<T> d_o,
                                               const float* logs, float* inners, TO* to, const fuse_heads& to_strides,
                                               const fuse_attention_shape& shape, unsigned*, float factor, const SCORE& score,
                                               const OF_WEIGHT& of_weight, const OF_SCORE& of_score)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 127) / 128 * 128;
        const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
        const Tile tile(blockIdx.x, shape);
        const int first = tile.m + row, m = first + lane / 4, rows = (int)shape.m - tile.m;
        fuse_copy_rows<ROWS, D>(room, tile.in(q.from, q.strides, tile.m), q.strides.row, rows, (int)shape.depth);
        fuse_copy_rows<ROWS, DV>(room + ROWS * D * 2, tile.in(d_o.from, d_o.strides, tile.m), d_o.strides.row, rows, (int)shape.columns);
        fuse_warp_left<T, ROWS, D, 1, STAYS> queries;
        fuse_warp_left<T, ROWS, DV, 1, STAYS> of_results;
        const auto take = [&] {
            queries.take(room, row);
            of_results.take(room + ROWS * D * 2, row);
        };
        const auto copy = [&](int block, unsigned at) {
            const int n = block * TN, rows = (int)shape.n - n;
            fuse_copy_rows<TN, D>(at, tile.in(k.from, k.strides, n), k.strides.row, rows, (int)shape.depth);
            fuse_copy_rows<TN, DV>(at + TN * D * 2, tile.in(v.from, v.strides, n), v.strides.row, rows, (int)shape.columns);
        };
        float sum[1][D / 2] = {}, line_log[2], line_inner[2];
        const long long before = fuse_rows_before(tile.batch, shape);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = min(m + 8 * r, (int)shape.m - 1);
            line_log[r] = logs[before + row];
            line_inner[r] = fuse_inner<DV>(tile.in(o.from, o.strides, row), tile.in(d_o.from, d_o.strides, row), (int)shape.columns);
            if (lane % 4 == 0 && m + 8 * r < (int)shape.m) inners[before + row] = line_inner[r];
        }
        const auto log_of = [&](int i) { return line_log[i / 2 % 2]; };
        const auto inner_of = [&](int i) { return line_inner[i / 2 % 2]; };
        // What keys from n on, which lie so far into a block, add to the sum.
        const auto add = [&](auto edge, int n, unsigned at, int within) {
            float s[1][N / 2], products[N / 2], d[1][N / 2];
            unsigned narrow[1][N / 4];
            const Scores scores = {shape, tile.batch, logs, m, n + lane % 4 * 2};
            fuse_multipliers<N / 2, false, OF_WEIGHT> by = {of_weight};
            scores.look(by);
            queries.template multiply<TN>(s, at, within);
            of_results.template multiply<TN>(d, at + TN * D * 2, within);
            scores.template to_weights<decltype(edge)::value>(s[0], products, factor, log_of, score);
            scores.to_gradients(s[0], d[0], products, inner_of, by, of_score);
            fuse_narrow<T>(narrow[0], s[0]);
            fuse_add_across<T, TN, D>(sum, narrow, at, within, 0);
        };
        fuse_over_blocks<STAGES, BYTES, OVER>(room + (OVER ? 0 : OWN), 0, tile.blocks - 1, take, copy, [&](int block, unsigned at) {
#pragma unroll 1
            for (int within = TN - N; within >= 0; within -= N) {
                const int n = block * TN + within, past = n + N - 1;
                if (n >= (int)shape.n || (CAUSAL && n > first + 15)) continue;
                if (past >= (int)shape.n || (CAUSAL && past > first)) add(fuse_bool<true>(), n, at, within);
                else add(fuse_bool<false>(), n, at, within);
            }
        });
#pragma unroll
        for (int i = 0; i < D / 2; ++i) sum[0][i] *= factor;
#pragma unroll
        for (int r = 0; r < 2; ++r)
            fuse_put_row(tile.in(to, to_strides, m + 8 * r), m + 8 * r < (int)shape.m ? (int)shape.depth : 0, sum[0], r);
    }
};

// dK and dV, for ROWS keys, by blocks of TM queries. Where a warp has no registers for all columns of its sums, two have the same keys,
// and each half the columns.
template <class T, class TO, int D, int DV, int ROWS, int TM, int STAGES, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT>
struct fuse_attention_warps_dkv {
    static constexpr int SHARERS = 64 / ROWS, N = TM < 32 ? TM : 32;
    static_assert(SHARERS == 1 || SHARERS == 2, "16 keys a warp");
    // Columns of the sums that a warp has.
    static constexpr int OF_D = SHARERS == 1 ? D : (D / 2 + 31) / 32 * 32, OF_DV = SHARERS == 1 ? DV : (DV / 2 + 31) / 32 * 32;
    static constexpr int V_AT = ROWS * D * 2, OWN = V_AT + ROWS * DV * 2;
    static constexpr int DO_AT = TM * D * 2, NUMBERS_AT = DO_AT + TM * DV * 2, BYTES = NUMBERS_AT + TM * 8;
    // Where there are registers for it, the block's own rows are there.
    static constexpr bool STAYS = D + DV <= 160;
    typedef fuse_back_scores<N / 2, CAUSAL, PLAIN, PLAIN_WEIGHT, true> Scores;

    template <class SCORE, class WEIGHT, class OF_WEIGHT, class OF_SCORE>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, fuse_matrices<T> d_o, const float* logs,
                                               const float* inners, TO* to_k, const fuse_heads& to_k_strides, TO* to_v,
                                               const fuse_heads& to_v_strides, const fuse_attention_shape& shape, unsigned*, float factor,
                                               const SCORE& score, const WEIGHT& weight, const OF_WEIGHT& of_weight, const OF_SCORE& of_score)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 127) / 128 * 128;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / SHARERS * 16, sharer = warp % SHARERS;
        // Keys from m of the tile on.
        const fuse_query_tile<ROWS, TM, false> tile(blockIdx.x, shape);
        const int first = tile.m + row, n = first + lane / 4, rows = (int)shape.n - tile.m;
        fuse_copy_rows<ROWS, D>(room, tile.in(k.from, k.strides, tile.m), k.strides.row, rows, (int)shape.depth);
        fuse_copy_rows<ROWS, DV>(room + V_AT, tile.in(v.from, v.strides, tile.m), v.strides.row, rows, (int)shape.columns);
        fuse_warp_left<T, ROWS, D, 1, STAYS> keys;
        fuse_warp_left<T, ROWS, DV, 1, STAYS> values;
        const auto take = [&] {
            keys.take(room, row);
            values.take(room + V_AT, row);
        };
        const auto copy = [&](int block, unsigned at) {
            const int m = block * TM, rows = (int)shape.m - m;
            const long long before = fuse_rows_before(tile.batch, shape) + m;
            fuse_copy_rows<TM, D>(at, tile.in(q.from, q.strides, m), q.strides.row, rows, (int)shape.depth);
            fuse_copy_rows<TM, DV>(at + DO_AT, tile.in(d_o.from, d_o.strides, m), d_o.strides.row, rows, (int)shape.columns);
            fuse_copy_numbers<TM>(at + NUMBERS_AT, logs + before, rows, 0);
            fuse_copy_numbers<TM>(at + NUMBERS_AT + TM * 4, inners + before, rows, TM % 128);
        };
        float of_keys[1][OF_D / 2] = {}, of_values[1][OF_DV / 2] = {};
        // What queries from m on, which lie so far into a block, add to the sums.
        const auto add = [&](auto edge, int m, unsigned at, int within) {
            float s[1][N / 2], products[N / 2], d[1][N / 2], numbers[N / 4];
            unsigned narrow[1][N / 4];
            const Scores scores = {shape, tile.batch, logs, m + lane % 4 * 2, n};
            const auto take_numbers = [&](int from) {
                const unsigned of = at + NUMBERS_AT + (from + within) * 4 + lane % 4 * 8;
#pragma unroll
                for (int j = 0; j < N / 8; ++j)
                    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(numbers[2 * j]), "=f"(numbers[2 * j + 1]) : "r"(of + j * 32) : "memory");
            };
            const auto number_of = [&](int i) { return numbers[i / 4 * 2 + i % 2]; };
            fuse_multipliers<N / 2, true, WEIGHT> to = {weight};
            fuse_multipliers<N / 2, true, OF_WEIGHT> of = {of_weight};
            // What is dropped is dropped on the way back, too.
            const auto& by = fuse_first_if_same(to, of);
            const bool is_same = (const void*)&by == (const void*)&to;
            scores.look(to);
            if (!is_same) scores.look(of);
            keys.template multiply<TM>(s, at, within);
            values.template multiply<TM>(d, at + DO_AT, within);
            scores.settle(to);
            if (!is_same) scores.settle(of);
            take_numbers(0);
            scores.template to_weights<decltype(edge)::value>(s[0], products, factor, number_of, score);
            scores.template narrow<T>(narrow[0], s[0], to);
            fuse_add_across<T, TM, DV>(of_values, narrow, at + DO_AT, within, sharer * OF_DV);
            take_numbers(TM);
            scores.to_gradients(s[0], d[0], products, number_of, by, of_score);
            fuse_narrow<T>(narrow[0], s[0]);
            fuse_add_across<T, TM, D>(of_keys, narrow, at, within, sharer * OF_D);
        };
        // From the first block of queries on that sees any of the keys.
        const int blocks = ((int)shape.m + TM - 1) / TM, least = CAUSAL ? tile.m / TM : 0;
        fuse_over_blocks<STAGES, BYTES, false>(room + OWN, least, blocks - 1, take, copy, [&](int block, unsigned at) {
#pragma unroll 1
            for (int within = TM - N; within >= 0; within -= N) {
                const int m = block * TM + within, past = m + N - 1;
                if (m >= (int)shape.m || (CAUSAL && past < first)) continue;
                if (past >= (int)shape.m || (CAUSAL && m < first + 15)) add(fuse_bool<true>(), m, at, within);
                else add(fuse_bool<false>(), m, at, within);
            }
        });
#pragma unroll
        for (int i = 0; i < OF_D / 2; ++i) of_keys[0][i] *= factor;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const bool live = n + 8 * r < (int)shape.n;
            const int of_d = sharer * OF_D, of_dv = sharer * OF_DV;
            fuse_put_row(tile.in(to_k, to_k_strides, n + 8 * r) + of_d, live ? (int)shape.depth - of_d : 0, of_keys[0], r);
            fuse_put_row(tile.in(to_v, to_v_strides, n + 8 * r) + of_dv, live ? (int)shape.columns - of_dv : 0, of_values[0], r);
        }
    }
};
#endif
