#if defined(HEAD_ROWS)
// Attention in one kernel on every device from compute capability 8.0 on: of halves, by products of single warps (mma.sync). What
// it computes is what the kernel for Hopper does, by the same softmax of blocks of keys (Dao, "FlashAttention-2", 2023).
//
// A block of threads is four warps. They share ROWS queries, 16 or 32 a warp, or, where there are no more than 16, the keys: each has
// the same queries and a quarter of every block of keys. Keys and values come by cp.async through a ring of PIECES blocks of either.
//
// Where there are too few queries to keep a device busy, `splits` blocks of threads share the keys of a tile (Dao et al.,
// "Flash-Decoding for long-context inference", 2023). Each leaves its largest scores, its sums and what it added up, and the last to
// finish joins all of them, always in the same order. Where heads read the same keys, `folded` of them are rows of one tile.
//
// D, DV, TN, CAUSAL, ZERO, PLAIN, KEEPS and PLAIN_WEIGHT are what they are there. Where logarithms are kept for a way back, a tile is a
// block's own.
template <class T, class TO, int D, int DV, int ROWS, int TN, int PIECES, bool CAUSAL, bool ZERO, bool PLAIN, bool KEEPS, bool PLAIN_WEIGHT>
struct fuse_attention_warps {
    static constexpr bool FEW = ROWS == 16;
    // Warps that share the keys of a block, keys that a warp has of one, and tiles of 16 rows that it has.
    static constexpr int SHARERS = FEW ? 4 : 1, N = TN / SHARERS, TILES = FEW ? 1 : ROWS / 64;
    static_assert(PIECES >= 2 && N % 16 == 0, "a piece comes while another is there, of whole products");
    static_assert(!KEEPS || !FEW, "rows that are kept are of one head");
    // Shared memory: queries and the ring; behind the loop largest scores and sums, and what was added up in rows of so many floats.
    static constexpr int PIECE = TN * (D > DV ? D : DV) * 2, RING = ROWS * D * 2, ROW = DV + 8;
    // What a block leaves for the last one: rows of values, then the largest score and the sum of each.
    static constexpr int PART = ROWS * (DV + 2);
    static __device__ __forceinline__ float never() { return __int_as_float(0xff800000); }
    typedef fuse_query_tile<ROWS, TN, CAUSAL> Tile;

    // A row of a tile: of which head it is, and which query.
    struct Place {
        int head, query;

        __device__ __forceinline__ Place(const Tile& tile, int row, const fuse_attention_shape& shape)
        {
            const int above = FEW ? row / (int)shape.m : 0;
            head = tile.batch[2] + above;
            query = row - above * (int)shape.m;
        }

        template <class E> __device__ __forceinline__ E* in(E* from, const fuse_heads& strides, const Tile& tile) const
        {
            return from + (tile.batch[0] * strides.batch[0] + tile.batch[1] * strides.batch[1] + head * strides.batch[2] + query * strides.row);
        }
    };

    static __device__ __forceinline__ int rows_of(const fuse_attention_shape& shape) { return (int)shape.m * (FEW ? shape.folded : 1); }

    // The queries of a tile; what is not there is 0.
    static __device__ __forceinline__ void copy_queries(unsigned to, const fuse_matrices<T>& q, const Tile& tile, const fuse_attention_shape& shape)
    {
        constexpr int WIDE = fuse_head_row<D>::WIDTH, CHUNKS = D / 8;
        for (int i = threadIdx.x; i < ROWS * CHUNKS; i += 128) {
            const int row = i / CHUNKS, chunk = i % CHUNKS, n = chunk % (WIDE / 8);
            const bool live = tile.m + row < rows_of(shape) && chunk * 8 < shape.depth;
            const T* const from = live ? Place(tile, tile.m + row, shape).in(q.from, q.strides, tile) + chunk * 8 : q.from;
            fuse_copy(to + chunk / (WIDE / 8) * (ROWS * WIDE * 2) + row * (WIDE * 2) + fuse_place<WIDE>(row, n) * 16, from, live);
        }
    }

    // The softmax of a thread's two rows of a tile as far as it has come, and by what the last larger score scales what was before it.
    struct Rows { float largest[2], sum[2], scale[2]; };

    // Scores become exponentials, of two rows at these places and keys from n on. EDGE: there may be keys that are none, or that are behind the query.
    template <bool EDGE, class SCORE, class MULTIPLIERS>
    static __device__ __forceinline__ void soften(float (&s)[N / 2], Rows& rows, const Tile& tile, const Place (&places)[2], int n,
                                                  const fuse_attention_shape& shape, float to_exp2, const SCORE& score, const MULTIPLIERS& by)
    {
        const auto key = [&](int i) { return n + i / 4 * 8 + i % 2; };
        // Places that are none read like the last one that is.
        const auto there = [&](int i) { return EDGE ? min(key(i), (int)shape.n - 1) : key(i); };
        const int batch[2][3] = {{tile.batch[0], tile.batch[1], places[0].head}, {tile.batch[0], tile.batch[1], places[1].head}};
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            const int r = i / 2 % 2;
            if (!PLAIN) s[i] = score(batch[r], s[i], places[r].query, there(i));
            if (EDGE && (key(i) >= (int)shape.n || (CAUSAL && key(i) > places[r].query))) s[i] = never();
        }
        float shift[2], part[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            part[r] = rows.largest[r];
#pragma unroll
            for (int j = 0; j < N / 8; ++j) part[r] = fmaxf(part[r], fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) part[r] = fmaxf(part[r], __shfl_xor_sync(~0u, part[r], stride));
            shift[r] = part[r] == never() ? 0.0f : part[r] * to_exp2;
            rows.scale[r] = fuse_exp2(__fmaf_rn(rows.largest[r], to_exp2, -shift[r]));
        }
        // Where scores are so large that the rounding of the exponent of 2 would be seen, the largest is subtracted first.
        if (__any_sync(~0u, !(fmaxf(fabsf(shift[0]), fabsf(shift[1])) < 4096.0f))) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float largest = part[r] == never() ? 0.0f : part[r];
                rows.scale[r] = fuse_exp2((rows.largest[r] - largest) * to_exp2);
                shift[r] = 0.0f;
#pragma unroll
                for (int j = 0; j < N / 4; ++j) s[j / 2 * 4 + 2 * r + j % 2] -= largest;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            rows.largest[r] = part[r];
            part[r] = 0.0f;
#pragma unroll
            for (int j = 0; j < N / 8; ++j) {
                float* const pair = s + 4 * j + 2 * r;
                pair[0] = fuse_exp2(__fmaf_rn(pair[0], to_exp2, -shift[r]));
                pair[1] = fuse_exp2(__fmaf_rn(pair[1], to_exp2, -shift[r]));
                part[r] += pair[0] + pair[1];
            }
            rows.sum[r] = __fmaf_rn(rows.sum[r], rows.scale[r], part[r]);
        }
#pragma unroll
        for (int i = 0; !PLAIN_WEIGHT && i < N / 2; ++i) s[i] = by.apply(batch[i / 2 % 2], i, s[i], places[i / 2 % 2].query, there(i));
    }

    // Eight columns of a row of the result, or of what is added up to it.
    struct Eight {
        float of[8];

        __device__ __forceinline__ Eight() : of{} {}

        __device__ __forceinline__ void add(const float4 (&values)[2], float weight)
        {
            const float all[8] = {values[0].x, values[0].y, values[0].z, values[0].w, values[1].x, values[1].y, values[1].z, values[1].w};
#pragma unroll
            for (int k = 0; k < 8; ++k) of[k] = __fmaf_rn(all[k], weight, of[k]);
        }

        template <class E> __device__ __forceinline__ void put(E* to) const
        {
            if constexpr (sizeof(E) == 4) {
                ((float4*)to)[0] = make_float4(of[0], of[1], of[2], of[3]);
                ((float4*)to)[1] = make_float4(of[4], of[5], of[6], of[7]);
            } else {
                typedef fuse_element<E> element;
                *(uint4*)to = make_uint4(element::pair(of[0], of[1]), element::pair(of[2], of[3]), element::pair(of[4], of[5]), element::pair(of[6], of[7]));
            }
        }
    };

    // What a share of a row under a largest score of its own weighs under that of all.
    static __device__ __forceinline__ float weigh(float largest, float of_all, float to_exp2)
    {
        return fuse_exp2((largest - (of_all == never() ? 0.0f : of_all)) * to_exp2);
    }

    // What normalises a row with such a sum.
    static __device__ __forceinline__ float normal(float sum) { return ZERO && sum == 0.0f ? 0.0f : 1.0f / sum; }

    // Calls `f` with a row of the tile and the first of eight columns, shared by so many neighbouring threads, which all come along.
    template <int SHARE, class F> static __device__ __forceinline__ void over_results(int rows, const fuse_attention_shape& shape, const F& f)
    {
        const int across = (int)shape.columns / 8, total = rows * across;
        for (int start = 0; start < total; start += 128 / SHARE) {
            const int i = start + (int)threadIdx.x / SHARE, last = min(i, total - 1);
            f(i < total, last / across, last % across * 8);
        }
    }

    // By the last block of a tile: joins what all have left. In shared memory there is room for two floats of each block and row.
    static __device__ __noinline__ void join(const float* parts, float2* shares, TO* to, const fuse_heads& to_strides, const Tile& tile,
                                                const fuse_attention_shape& shape, float to_exp2)
    {
        const int rows = min(ROWS, rows_of(shape) - tile.m), splits = shape.splits;
        {
            constexpr int SHARE = 128 / ROWS;
            const int row = threadIdx.x / SHARE, own = threadIdx.x % SHARE;
            const float2* const left = (const float2*)(parts + ROWS * DV) + min(row, rows - 1);
            float largest = never(), sum = 0.0f;
#pragma unroll 8
            for (int s = own; s < splits; s += SHARE) {
                const float2 share = fuse_fresh(left + s * (PART / 2));
                shares[s * ROWS + row] = share;
                largest = fmaxf(largest, share.x);
            }
#pragma unroll
            for (int stride = 1; stride < SHARE; stride *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, stride));
            for (int s = own; s < splits; s += SHARE) {
                float2& share = shares[s * ROWS + row];
                share.x = weigh(share.x, largest, to_exp2);
                sum = __fmaf_rn(share.y, share.x, sum);
            }
#pragma unroll
            for (int stride = 1; stride < SHARE; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
            if (own == 0) shares[splits * ROWS + row].x = normal(sum);
        }
        __syncthreads();
        constexpr int SHARE = FEW ? 4 : 1, AHEAD = 8;
        over_results<SHARE>(rows, shape, [&](bool live, int row, int column) {
            const float4* const values = (const float4*)(parts + row * DV + column);
            Eight all;
            for (int start = threadIdx.x % SHARE; start < splits; start += SHARE * AHEAD) {
                float4 part[AHEAD][2];
#pragma unroll
                for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                    for (int half = 0; half < 2; ++half) part[k][half] = fuse_fresh(values + min(start + k * SHARE, splits - 1) * (PART / 4) + half);
#pragma unroll
                for (int k = 0; k < AHEAD; ++k)
                    if (start + k * SHARE < splits) all.add(part[k], shares[(start + k * SHARE) * ROWS + row].x);
            }
#pragma unroll
            for (int k = 0; k < 8; ++k) {
#pragma unroll
                for (int stride = 1; stride < SHARE; stride *= 2) all.of[k] += __shfl_xor_sync(~0u, all.of[k], stride);
                all.of[k] *= shares[splits * ROWS + row].x;
            }
            if (live && threadIdx.x % SHARE == 0) all.put(Place(tile, tile.m + row, shape).in(to, to_strides, tile) + column);
        });
    }

    // `beside`: what blocks leave for the last one, or, if they are kept, the logarithms of all rows.
    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, TO* to, const fuse_heads& to_strides,
                                               float* beside, const fuse_attention_shape& shape, unsigned* counters, float factor,
                                               const SCORE& score, const WEIGHT& weight)
    {
        extern __shared__ unsigned char fuse_memory[];
        const unsigned room = (fuse_shared_at(fuse_memory) + 127) / 128 * 128;
        // exp(x) = 2^(x log2(e))
        const float to_exp2 = factor * 1.44269504f;
        const int number = blockIdx.x / shape.splits, split = blockIdx.x - number * shape.splits;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = FEW ? 0 : warp * (16 * TILES), key = FEW ? warp * N : 0;
        const Tile tile(number, shape);
        const int each = (tile.blocks + shape.splits - 1) / shape.splits;
        const int first = min(split * each, tile.blocks), last = min(first + each, tile.blocks);

        // The pieces of the ring: keys and values of one block after the other, from the last one on.
        fuse_lap<PIECES> coming, there;
        int piece = 0;
        const auto send = [&] {
            const int block = last - 1 - piece / 2, n = block * TN, live = (int)shape.n - n;
            const unsigned at = room + RING + coming.stage * PIECE;
            if (block >= first) {
                if (piece % 2 == 0) fuse_copy_rows<TN, D>(at, tile.in(k.from, k.strides, n), k.strides.row, live, (int)shape.depth);
                else fuse_copy_rows<TN, DV>(at, tile.in(v.from, v.strides, n), v.strides.row, live, (int)shape.columns);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            ++piece;
            coming.next();
        };
        copy_queries(room, q, tile, shape);
#pragma unroll
        for (int i = 0; i < PIECES - 1; ++i) send();
        // The next piece, and one more on its way, to where all have left.
        const auto take = [&] {
            asm volatile("cp.async.wait_group %0;" :: "n"(PIECES - 2) : "memory");
            __syncthreads();
            send();
            const unsigned at = room + RING + there.stage * PIECE;
            there.next();
            return at;
        };

        Rows rows[TILES];
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            rows[i / 2].largest[i % 2] = never();
            rows[i / 2].sum[i % 2] = 0.0f;
        }
        // Places that are none are the last one that is.
        const auto place = [&](int i) { return Place(tile, min(tile.m + row + i * 8 + lane / 4, rows_of(shape) - 1), shape); };
        const Place two[2] = {place(0), place(1)};
        float o[TILES][DV / 2] = {};
        fuse_warp_left<T, ROWS, D, TILES, false> queries;
        queries.take(room, row);
        const auto step = [&](auto edge, int block) {
            float s[TILES][N / 2];
            unsigned p[TILES][N / 4];
            queries.template multiply<TN>(s, take(), key);
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const Place places[2] = {FEW ? two[0] : place(2 * t), FEW ? two[1] : place(2 * t + 1)};
                const int n = block * TN + key + lane % 4 * 2;
                if constexpr (FEW || PLAIN_WEIGHT) {
                    // Two rows may be of two heads.
                    const auto alone = [&](const int (&batch)[3], float w, int m, int n) { return weight(batch, w, m, n); };
                    const fuse_multipliers<N / 2, false, decltype(alone)> by = {alone};
                    soften<decltype(edge)::value>(s[t], rows[t], tile, places, n, shape, to_exp2, score, by);
                } else {
                    fuse_multipliers<N / 2, false, WEIGHT> by = {weight};
                    by.look(tile.batch, tile.m + row + t * 16 + lane / 4, n, (int)shape.m - 1, (int)shape.n - 1);
                    soften<decltype(edge)::value>(s[t], rows[t], tile, places, n, shape, to_exp2, score, by);
                }
#pragma unroll
                for (int i = 0; i < DV / 2; ++i) o[t][i] *= rows[t].scale[i / 2 % 2];
                fuse_narrow<T>(p[t], s[t]);
            }
            fuse_add_across<T, TN, DV>(o, p, take(), key, 0);
        };
        int block = last - 1;
        for (; block >= first; --block) {
            if (!FEW && block * TN + TN <= (int)shape.n && !(CAUSAL && block * TN + TN - 1 > tile.m)) break;
            step(fuse_bool<true>(), block);
        }
        for (; !FEW && block >= first; --block) step(fuse_bool<false>(), block);

        // What the threads have changes hands in shared memory: it goes to memory in whole rows.
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        float2* const sums = (float2*)__cvta_shared_to_generic(room);
        float* const added = (float*)(sums + SHARERS * ROWS);
        const int sharer = FEW ? warp : 0;
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            const int at = sharer * ROWS + row + i * 8 + lane / 4;
            float sum = rows[i / 2].sum[i % 2];
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
            if (lane % 4 == 0) sums[at] = make_float2(rows[i / 2].largest[i % 2], sum);
#pragma unroll
            for (int j = 0; j < DV / 8; ++j) {
                const float* const pair = o[i / 2] + 4 * j + 2 * (i % 2);
                *(float2*)(added + at * ROW + j * 8 + lane % 4 * 2) = make_float2(pair[0], pair[1]);
            }
        }
        __syncthreads();
        float* const part = KEEPS ? nullptr : beside + (long long)blockIdx.x * PART;
        over_results<1>(min(ROWS, rows_of(shape) - tile.m), shape, [&](bool live, int row, int column) {
            if (!live) return;
            float largest = never(), sum = 0.0f;
            Eight all;
#pragma unroll
            for (int s = 0; s < SHARERS; ++s) largest = fmaxf(largest, sums[s * ROWS + row].x);
#pragma unroll
            for (int s = 0; s < SHARERS; ++s) {
                const float2 of = sums[s * ROWS + row];
                const float4* const values = (const float4*)(added + (s * ROWS + row) * ROW + column);
                const float weight = weigh(of.x, largest, to_exp2);
                sum = __fmaf_rn(of.y, weight, sum);
                all.add({values[0], values[1]}, weight);
            }
            if (KEEPS && column == 0) fuse_put_log<ZERO>(beside, shape, tile.batch, tile.m + row, largest, factor, sum);
            if (!KEEPS && shape.splits > 1) {
                if (column == 0) ((float2*)(part + ROWS * DV))[row] = make_float2(largest, sum);
                return all.put(part + row * DV + column);
            }
#pragma unroll
            for (int k = 0; k < 8; ++k) all.of[k] *= normal(sum);
            all.put(Place(tile, tile.m + row, shape).in(to, to_strides, tile) + column);
        });
        if (!KEEPS && shape.splits > 1 && fuse_last(counters + number, shape.splits))
            join(part - (long long)split * PART, sums, to, to_strides, tile, shape, to_exp2);
    }
};
#endif
