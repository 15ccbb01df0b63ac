#if defined(HEAD_KEYS)
// Attention of floats in one kernel, by the scheme of "attention.cuh" and with the products of "thirds.cuh": every float is three
// bfloat16, the six largest products of parts are summed over 16 inner positions on tensor cores, and those sums are added up with
// rounding. So are the weights, which are not normalised before the end.
//
// Four warps read keys and values, split them and fill a ring with pieces of 32 inner positions. GROUPS warpgroups have 64 queries
// each: their parts lie in shared memory as a thread needs them, the weights are split in registers. They take turns at giving tensor
// cores work, so that the softmax of one runs beside the products of the other.
//
// A piece with values that parts do not hold (below 2^-100, from 2^60 on, not finite) is multiplied in float arithmetic, and tensor
// cores find zeros in its place.

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

// Queries and keys are D deep, values have DV columns; both are rounded up to a multiple of 32, with zeros. TN keys are a block.
// CAUSAL: no key behind a query. ZERO: a row without keys is 0, and not NaN. PLAIN: a score is the product as it is. KEEPS: writes
// the logarithm of a row's sum of exponentials. PLAIN_WEIGHT: nothing becomes of a weight before the second product.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool CAUSAL, bool ZERO, bool PLAIN, bool KEEPS, bool PLAIN_WEIGHT>
struct fuse_attention_floats {
    static_assert(TN == 64, "scores of a block are the sums of one product");
    static constexpr int TM = 64 * GROUPS, FEEDERS = 128, STEPS = D / 16;
    // Columns of values that are summed at a time.
    static constexpr int WIDE = DV % 64 == 0 ? 64 : DV % 48 == 0 ? 48 : 32, WIDES = DV / WIDE;
    static constexpr int KEY_PIECES = D / 32, VALUE_PIECES = TN / 32 * WIDES, PIECES = KEY_PIECES + VALUE_PIECES;
    // 16 bytes of a key's neighbours along the depth, or of a column's along the keys, lie next to each other, and the next 16 so
    // far on, for keys in different banks.
    static constexpr int K_NEXT = TN * 16 + 64, V_NEXT = WIDE * 16, PIECE = 2 * 3 * 2 * K_NEXT;
    static constexpr int QUERIES = GROUPS * STEPS * 3 * 128 * 16, RAW = TN * 32 * 4;
    // As many pieces as there is room for.
    static constexpr int ROOM = 229376, MOST = (ROOM - QUERIES - FEEDERS / 32 * RAW) / PIECE;
    static constexpr int STAGES = MOST < 12 ? MOST : 12;
    typedef fuse_query_tile<TM, TN, CAUSAL> Tile;
    static __device__ __forceinline__ float never() { return __int_as_float(0xff800000); }

    struct Shared {
        uint4 queries[GROUPS][STEPS][3][128];
        unsigned char raw[FEEDERS / 32][RAW];
        unsigned char piece[STAGES][PIECE];
        fuse_ring<STAGES> ring;
        // Of every piece the number of its tile, and its own number if it is odd.
        int tile[STAGES];
        unsigned odd[STAGES];
        int next;
    };

    // Splits eight values and writes their parts.
    template <int NEXT> static __device__ __forceinline__ void split(unsigned char* to, const float (&of)[8], fuse_range& range)
    {
        unsigned parts[3][4];
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            fuse_third_pair(parts, pair, of[2 * pair], of[2 * pair + 1]);
            range.meet(parts[0][pair]);
        }
#pragma unroll
        for (int part = 0; part < 3; ++part)
            *(uint4*)(to + part * 2 * NEXT) = make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
    }

    // Half a piece of TN keys, 16 deep. A lane copies what it will read: of every sixteen keys two lanes have one.
    static __device__ __forceinline__ void copy_keys(unsigned to, const T* from, long long stride, int live, int left)
    {
        const int lane = threadIdx.x % 32, first = lane / 2;
        const T* at = from + first * stride + lane % 2 * 8;
        left -= lane % 2 * 8;
        to += lane * 16;
#pragma unroll
        for (int k = 0; k < 4; ++k, at += 16 * stride)
#pragma unroll
            for (int four = 0; four < 2; ++four) {
                const bool there = first + 16 * k < live && four * 4 < left;
                fuse_copy(to + (k * 2 + four) * 512, there ? at + four * 4 : from, there);
            }
    }

    // Half a piece of WIDE columns of 16 values, row by row.
    static __device__ __forceinline__ void copy_values(unsigned to, const T* from, long long stride, int live, int columns)
    {
        constexpr int CHUNKS = WIDE / 4;
#pragma unroll
        for (int k = 0; k < WIDE / 8; ++k) {
            const int chunk = threadIdx.x % 32 + 32 * k, row = chunk / CHUNKS, column = chunk % CHUNKS * 4;
            const bool there = row < live && column < columns;
            fuse_copy(to + chunk * 16, there ? from + row * stride + column : from, there);
        }
    }

    // What a lane splits of half a piece: eight neighbours of a key, or eight values of a column, at a time.
    static __device__ __forceinline__ void read_keys(float (&of)[4][8], const unsigned char* from)
    {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int four = 0; four < 8; four += 4) {
                const float4 x = *(const float4*)(from + (k * 2 + four / 4) * 512 + threadIdx.x % 32 * 16);
                of[k][four] = x.x, of[k][four + 1] = x.y, of[k][four + 2] = x.z, of[k][four + 3] = x.w;
            }
    }

    static __device__ __forceinline__ void read_values(float (&of)[4][8], const unsigned char* from)
    {
#pragma unroll
        for (int k = 0; k < WIDE / 16; ++k) {
            const int pack = threadIdx.x % 32 + 32 * k, column = pack % WIDE, eight = pack / WIDE;
#pragma unroll
            for (int e = 0; e < 8; ++e) of[k][e] = ((const float*)from)[(eight * 8 + e) * WIDE + column];
        }
    }

    // The warps that bring keys and values, each every fourth piece; the next one is on its way while the last one is split.
    static __device__ __forceinline__ void feed(Shared& shared, const fuse_matrices<T>& k, const fuse_matrices<T>& v,
                                                const fuse_attention_shape& shape, unsigned* counters)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, total = shape.tiles * shape.heads;
        unsigned char* const raw = shared.raw[warp];
        unsigned stage = warp, parity = 1, number = warp + 1;
        int at = warp, tile_number = blockIdx.x;
        const auto begin = [&] {
            shared.ring.await(shared.ring.empty[stage], parity);
            if (lane == 0) shared.tile[stage] = tile_number;
        };
        const auto end = [&] {
            // What was written is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            shared.ring.arrive(shared.ring.full[stage]);
        };
        for (; tile_number < total;) {
            const Tile tile(tile_number, shape);
            int next = 0;
            if (threadIdx.x == 0) next = gridDim.x + atomicAdd(counters, 1u);
            const T* const keys = tile.in(k.from, k.strides, 0);
            const T* const values = tile.in(v.from, v.strides, 0);
            const int pieces = tile.blocks * PIECES;
            // Brings half a piece, if there is one.
            const auto copy = [&](int half) {
                if (at < pieces) {
                    const int back = at / PIECES, piece = at - back * PIECES, n = (tile.blocks - 1 - back) * TN;
                    const unsigned to = fuse_shared_at(raw) + half * (RAW / 2);
                    if (piece < KEY_PIECES) {
                        const int d = piece * 32 + half * 16;
                        const bool there = d < (int)shape.depth;
                        copy_keys(to, keys + n * k.strides.row + (there ? d : 0), k.strides.row, there ? (int)shape.n - n : 0, (int)shape.depth - d);
                    } else {
                        const int of = piece - KEY_PIECES, column = of % WIDES * WIDE, first = n + of / WIDES * 32 + half * 16;
                        const bool there = first < (int)shape.n && column < (int)shape.columns;
                        copy_values(to, there ? values + first * v.strides.row + column : values, v.strides.row, there ? (int)shape.n - first : 0,
                                    (int)shape.columns - column);
                    }
                }
                asm volatile("cp.async.commit_group;" ::: "memory");
            };
            copy(0);
            copy(1);
            while (at < pieces) {
                begin();
                unsigned char* const piece = shared.piece[stage];
                const bool of_keys = at % PIECES < KEY_PIECES;
                fuse_range range;
                at += 4;
#pragma unroll 1
                for (int half = 0; half < 2; ++half) {
                    float of[4][8];
                    const unsigned char* const from = raw + half * (RAW / 2);
                    asm volatile("cp.async.wait_group 1;" ::: "memory");
                    __syncwarp();
                    if (of_keys) read_keys(of, from);
                    else read_values(of, from);
                    __syncwarp();
                    copy(half);
                    if (of_keys) {
                        unsigned char* const to = piece + half * 6 * K_NEXT + lane % 2 * K_NEXT + lane / 2 * 16;
#pragma unroll
                        for (int k = 0; k < 4; ++k) split<K_NEXT>(to + k * 16 * 16, of[k], range);
                    } else {
#pragma unroll
                        for (int k = 0; k < WIDE / 16; ++k) {
                            const int pack = lane + 32 * k;
                            split<V_NEXT>(piece + half * 6 * V_NEXT + pack / WIDE * V_NEXT + pack % WIDE * 16, of[k], range);
                        }
                    }
                }
                const bool is_odd = __any_sync(~0u, range.is_odd());
                __syncwarp();
                if (is_odd)
#pragma unroll 1
                    for (int zero = lane * 16; zero < PIECE; zero += 32 * 16) *(uint4*)(piece + zero) = make_uint4(0, 0, 0, 0);
                if (lane == 0) shared.odd[stage] = is_odd ? number : 0;
                end();
                number += 4, stage += 4;
                if (stage >= STAGES) stage -= STAGES, parity ^= 1;
            }
            at -= pieces;
            if (threadIdx.x == 0) shared.next = next;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            tile_number = *(volatile int*)&shared.next;
            asm volatile("bar.sync 1, 128;" ::: "memory");
        }
        // The end is a piece too.
        if (at == 0) {
            begin();
            end();
        }
        // The last block to leave lets the counters be 0 again.
        if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = counters[1] = 0;
    }

    // What a thread of those that multiply is: it has two rows, eight apart, and of every eight columns two.
    struct Thread {
        int group, row, column, m;
        Tile tile;

        __device__ __forceinline__ Thread(int number, const fuse_attention_shape& shape)
            : group(threadIdx.x / 128 - 1), row(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4), column(threadIdx.x % 4 * 2), tile(number, shape)
        {
            m = tile.m + group * 64 + row;
        }
    };

    // Reads queries and leaves their parts where this thread will read them again. Whether any of this warp is odd.
    static __device__ __forceinline__ bool take_queries(uint4 (*to)[3][128], const fuse_matrices<T>& q, const Thread& thread, const fuse_attention_shape& shape)
    {
        fuse_range range;
        float2 of[STEPS][4];
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                const int m = thread.m + pair % 2 * 8, d = step * 16 + pair / 2 * 8 + thread.column;
                const T* from = thread.tile.in(q.from, q.strides, m) + d;
                of[step][pair] = m < (int)shape.m && d < (int)shape.depth ? *(const float2*)from : make_float2(0, 0);
            }
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            unsigned parts[3][4];
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                fuse_third_pair(parts, pair, of[step][pair].x, of[step][pair].y);
                range.meet(parts[0][pair]);
            }
#pragma unroll
            for (int part = 0; part < 3; ++part)
                to[step][part][threadIdx.x % 128] = make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
        }
        return __any_sync(~0u, range.is_odd());
    }

    // The six products of parts.
    template <int N> static __device__ __forceinline__ void multiply_parts(float (&sum)[N], const unsigned (&left)[3][4], const unsigned char* right, int next)
    {
        const unsigned long long right_0 = fuse_pieces(right, next, 128), right_1 = right_0 + 2 * next / 16, right_2 = right_1 + 2 * next / 16;
        fuse_wgmma_begin();
        fuse_wgmma(sum, left[2], right_0, 0);
        fuse_wgmma(sum, left[1], right_1, 1);
        fuse_wgmma(sum, left[0], right_2, 1);
        fuse_wgmma(sum, left[1], right_0, 1);
        fuse_wgmma(sum, left[0], right_1, 1);
        fuse_wgmma(sum, left[0], right_0, 1);
        fuse_wgmma_end();
    }

    // Where a warpgroup is on its way round the ring; the number of the piece it has come to.
    struct Way {
        Shared& shared;
        fuse_lap<STAGES> ahead, behind;
        unsigned number = 0;

        // Waits for the next piece.
        __device__ __forceinline__ const unsigned char* await()
        {
            shared.ring.await(shared.ring.full[ahead.stage], ahead.parity);
            const unsigned char* piece = shared.piece[ahead.stage];
            ahead.next();
            return piece;
        }

        // Whether a piece is odd, before it is given back.
        __device__ __forceinline__ bool is_odd(unsigned stage) { return *(volatile unsigned*)&shared.odd[stage] == ++number; }

        // Gives a piece back.
        __device__ __forceinline__ void release()
        {
            __syncwarp();
            if (threadIdx.x % 32 == 0) shared.ring.arrive(shared.ring.empty[behind.stage]);
            behind.next();
        }
    };

    // The softmax of a thread's two rows as far as it has come, and by what the last larger score scales what was before it.
    struct Rows { float largest[2], sum[2], scale[2]; };

    // VALUES: adds what the last block's weights `s` say of its values to `o`; KEYS: then computes the next block's scores in `s`.
    // While a sum is on its way, the one before is added to the rest. Whether any of those keys are odd.
    template <bool VALUES, bool KEYS, class PASS>
    static __device__ __forceinline__ bool multiply(float (&s)[TN / 2], float (&o)[DV / 2], const Rows& rows, Way& way, const uint4 (*queries)[3][128],
                                                    const PASS& pass)
    {
        constexpr int PV = VALUES ? TN / 16 * WIDES : 0, ALL = PV + (KEYS ? STEPS : 0);
        unsigned parts[2][3][4];
        float of_values[2][WIDE / 2], of_keys[2][TN / 2];
        const unsigned char* at[WIDES];
        const unsigned char* keys = nullptr;
        bool is_odd = false;
        // The left operand of a step.
        const auto prepare = [&](int i) {
            if (i < PV) {
                if (i % WIDES != 0) return;
                const int step = i / WIDES;
#pragma unroll
                for (int pair = 0; pair < 4; ++pair) fuse_third_pair(parts[step % 2], pair, s[8 * step + 2 * pair], s[8 * step + 2 * pair + 1]);
            } else {
                const int step = i - PV;
#pragma unroll
                for (int part = 0; part < 3; ++part) {
                    const uint4 x = queries[step][part][threadIdx.x % 128];
                    unsigned (&to)[4] = parts[step % 2][part];
                    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
                }
            }
        };
        // Adds a sum that is there, and gives back a piece that has been multiplied.
        const auto absorb = [&](int i) {
            if (i < PV) {
                const int step = i / WIDES, wide = i % WIDES;
#pragma unroll
                for (int j = 0; j < WIDE / 2; ++j) {
                    float& to = o[wide * WIDE / 2 + j];
                    to = step == 0 ? __fmaf_rn(to, rows.scale[j / 2 % 2], of_values[i % 2][j]) : to + of_values[i % 2][j];
                }
                if (step % 2 == 1) way.release();
            } else {
                const int step = i - PV;
                if (step > 0)
#pragma unroll
                    for (int j = 0; j < TN / 2; ++j) s[j] += of_keys[step % 2][j];
                if (step % 2 == 1) way.release();
            }
        };
        prepare(0);
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            if (i < PV) {
                const int step = i / WIDES, wide = i % WIDES;
                if (step % 2 == 0) at[wide] = way.await();
                multiply_parts(of_values[i % 2], parts[step % 2], at[wide] + step % 2 * 6 * V_NEXT, V_NEXT);
            } else {
                const int step = i - PV;
                if (step % 2 == 0) {
                    const unsigned stage = way.ahead.stage;
                    keys = way.await();
                    is_odd |= way.is_odd(stage);
                }
                if (step == 0) multiply_parts(s, parts[0], keys, K_NEXT);
                else multiply_parts(of_keys[step % 2], parts[step % 2], keys + step % 2 * 6 * K_NEXT, K_NEXT);
            }
            if (i + 1 == ALL) pass();
            if (i > 0) {
                const int last = i - 1;
                if (last < PV) fuse_wgmma_await<1>(of_values[last % 2]);
                else if (last == PV) fuse_wgmma_await<1>(s);
                else fuse_wgmma_await<1>(of_keys[(last - PV) % 2]);
                absorb(last);
            }
            if (i + 1 < ALL) prepare(i + 1);
        }
        if (!KEYS) fuse_wgmma_await<0>(of_values[(ALL - 1) % 2]);
        else fuse_wgmma_await<0>(of_keys[(STEPS - 1) % 2]);
        absorb(ALL - 1);
        return __any_sync(~0u, is_odd);
    }

    // The scores of a block in float arithmetic.
    static __device__ __forceinline__ void multiply_keys_plainly(float (&s)[TN / 2], const fuse_matrices<T>& q, const fuse_matrices<T>& k,
                                                                 const Thread& thread, int n, const fuse_attention_shape& shape)
    {
        const T* rows[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) rows[r] = thread.tile.in(q.from, q.strides, min(thread.m + 8 * r, (int)shape.m - 1));
        const T* const keys = thread.tile.in(k.from, k.strides, n);
#pragma unroll
        for (int j = 0; j < TN / 2; ++j) s[j] = 0.0f;
#pragma unroll 1
        for (int d = 0; d < (int)shape.depth; ++d) {
            const float a[2] = {rows[0][d], rows[1][d]};
#pragma unroll
            for (int j = 0; j < TN / 2; ++j) {
                const int key = min(j / 4 * 8 + thread.column + j % 2, (int)shape.n - n - 1);
                s[j] = __fmaf_rn(a[j / 2 % 2], keys[key * k.strides.row + d], s[j]);
            }
        }
    }

    // What 16 weights in `s` say of WIDE columns of values from `from` on, in float arithmetic.
    static __device__ __forceinline__ void multiply_values_plainly(float* o, const float* s, const T* from, long long stride, int live, int columns)
    {
        const int lane = threadIdx.x % 32, column = lane % 4 * 2;
        float own[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) own[i] = s[i];
#pragma unroll 1
        for (int key = 0; key < 16; ++key) {
            float weight[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float two[2] = {key < 8 ? own[2 * r] : own[4 + 2 * r], key < 8 ? own[2 * r + 1] : own[5 + 2 * r]};
                weight[r] = __shfl_sync(~0u, key % 2 == 0 ? two[0] : two[1], lane / 4 * 4 + key % 8 / 2);
            }
            if (key >= live) continue;
#pragma unroll
            for (int j = 0; j < WIDE / 2; ++j) {
                const int at = j / 4 * 8 + column + j % 2;
                o[j] = __fmaf_rn(weight[j / 2 % 2], at < columns ? from[key * stride + at] : 0.0f, o[j]);
            }
        }
    }

    // The same of all pieces of a block that are odd, before the others are added.
    static __device__ __forceinline__ void add_odd_values(float (&o)[DV / 2], const float (&s)[TN / 2], Rows& rows, unsigned odd, const fuse_matrices<T>& v,
                                                          const Thread& thread, int n, const fuse_attention_shape& shape)
    {
#pragma unroll
        for (int j = 0; j < DV / 2; ++j) o[j] *= rows.scale[j / 2 % 2];
#pragma unroll
        for (int r = 0; r < 2; ++r) rows.scale[r] = 1.0f;
#pragma unroll
        for (int step = 0; step < TN / 16; ++step)
#pragma unroll
            for (int wide = 0; wide < WIDES; ++wide)
                if (odd >> (step / 2 * WIDES + wide) & 1)
                    multiply_values_plainly(o + wide * WIDE / 2, s + 8 * step, thread.tile.in(v.from, v.strides, n + step * 16) + wide * WIDE,
                                            v.strides.row, (int)shape.n - n - step * 16, (int)shape.columns - wide * WIDE);
    }

    // Scores become exponentials. EDGE: there may be keys that are none, or that are behind the query.
    template <bool EDGE, class SCORE, class WEIGHT>
    static __device__ __forceinline__ void soften(float (&s)[TN / 2], Rows& rows, const Thread& thread, int block, const fuse_attention_shape& shape,
                                                  float to_exp2, const SCORE& score, const WEIGHT& weight)
    {
        const int m = thread.m, n = block * TN + thread.column;
        if (!PLAIN || EDGE) {
#pragma unroll
            for (int i = 0; i < TN / 2; ++i) {
                const int row = m + i / 2 % 2 * 8, column = n + i / 4 * 8 + i % 2;
                // Places that are none read like the last one that is.
                if (!PLAIN) s[i] = score(thread.tile.batch, s[i], min(row, (int)shape.m - 1), EDGE ? min(column, (int)shape.n - 1) : column);
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
        if (!PLAIN_WEIGHT)
#pragma unroll
            for (int i = 0; i < TN / 2; ++i) {
                const int row = m + i / 2 % 2 * 8, column = n + i / 4 * 8 + i % 2;
                s[i] = weight(thread.tile.batch, s[i], min(row, (int)shape.m - 1), min(column, (int)shape.n - 1));
            }
    }

    // Groups take turns at giving tensor cores work, by a barrier each. One that has its turn waits for pieces, so all that a turn
    // takes must fit in the ring while the other group still holds what it has not come to.
    static constexpr bool TURNS = GROUPS > 1 && STAGES >= PIECES;
    static __device__ __forceinline__ void await_turn(int group)
    {
        if (TURNS) asm volatile("bar.sync %0, %1;" :: "r"(2 + group), "n"(GROUPS * 128) : "memory");
    }

    static __device__ __forceinline__ void pass_turn(int group)
    {
        if (TURNS) asm volatile("bar.arrive %0, %1;" :: "r"(2 + (group ^ 1)), "n"(GROUPS * 128) : "memory");
    }

    // A warpgroup that multiplies.
    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void consume(Shared& shared, const fuse_matrices<T>& q, const fuse_matrices<T>& k, const fuse_matrices<T>& v, TO* to,
                                                   const fuse_heads& to_strides, float* lse, const fuse_attention_shape& shape, float factor,
                                                   const SCORE& score, const WEIGHT& weight)
    {
        static_assert(GROUPS <= 2, "turns are passed between two");
        const int group = threadIdx.x / 128 - 1;
        // exp(x) = 2^(x log2(e))
        const float to_exp2 = factor * 1.44269504f;
        uint4 (*const queries)[3][128] = shared.queries[group];
        Way way = {shared};
        const auto pass = [&] { pass_turn(group); };
        if (group == 1) pass();
        for (;;) {
            shared.ring.await(shared.ring.full[way.ahead.stage], way.ahead.parity);
            const int number = *(volatile int*)&shared.tile[way.ahead.stage];
            if (number >= shape.tiles * shape.heads) break;
            const Thread thread(number, shape);
            const int first = thread.tile.m + group * 64;
            const bool odd_queries = take_queries(queries, q, thread, shape);
            float s[TN / 2], o[DV / 2] = {};
            Rows rows = {{never(), never()}, {}, {}};
            int block = thread.tile.blocks - 1;
            // Blocks behind all queries of this group are there for the other one.
            for (; CAUSAL && block * TN > first + 63; --block) {
                await_turn(group);
                pass();
                way.number += PIECES;
                for (int p = 0; p < PIECES; ++p) {
                    way.await();
                    way.release();
                }
            }
            const auto settle = [&](bool odd_keys, auto edge) {
                if (odd_keys || odd_queries) multiply_keys_plainly(s, q, k, thread, block * TN, shape);
                soften<decltype(edge)::value>(s, rows, thread, block, shape, to_exp2, score, weight);
            };
            const auto take_values = [&](int block) {
                fuse_lap<STAGES> lap = way.ahead;
                unsigned odd = 0;
                for (int p = 0; p < VALUE_PIECES; ++p, lap.next()) {
                    shared.ring.await(shared.ring.full[lap.stage], lap.parity);
                    odd |= (way.is_odd(lap.stage) ? 1u : 0u) << p;
                }
                odd = __shfl_sync(~0u, odd, 0);
                if (odd != 0) add_odd_values(o, s, rows, odd, v, thread, block * TN, shape);
                await_turn(group);
            };
            await_turn(group);
            settle(multiply<false, true>(s, o, rows, way, queries, pass), fuse_bool<true>());
            const auto step = [&](auto edge) {
                take_values(block + 1);
                settle(multiply<true, true>(s, o, rows, way, queries, pass), edge);
            };
            --block;
            if (CAUSAL)
                for (; block >= 0 && block * TN + TN - 1 > first; --block) step(fuse_bool<true>());
            for (; block >= 0; --block) step(fuse_bool<false>());
            take_values(0);
            multiply<true, false>(s, o, rows, way, queries, pass);
            finish(o, rows, thread, to, to_strides, lse, factor, shape);
        }
    }

    static __device__ __forceinline__ void finish(const float (&o)[DV / 2], Rows& rows, const Thread& thread, TO* to, const fuse_heads& to_strides, float* lse,
                                                  float factor, const fuse_attention_shape& shape)
    {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float sum = rows.sum[r];
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
            const float scale = ZERO && sum == 0.0f ? 0.0f : 1.0f / sum;
            const int m = thread.m + 8 * r;
            if (m >= (int)shape.m) continue;
            if (KEEPS && thread.column == 0) {
                const int* const batch = thread.tile.batch;
                const long long head = (batch[0] * shape.batch[1] + batch[1]) * shape.batch[2] + batch[2];
                // A row without keys has weights of 0 on the way back, or weights that are no numbers.
                const float nothing = ZERO ? -never() : __int_as_float(0x7fffffff);
                lse[head * shape.m + m] = sum == 0.0f ? nothing : __fmaf_rn(rows.largest[r], factor, logf(sum));
            }
            TO* const row = thread.tile.in(to, to_strides, m);
#pragma unroll
            for (int j = 0; j < DV / 8; ++j)
                if (j * 8 + thread.column < (int)shape.columns)
                    *(float2*)(row + j * 8 + thread.column) = make_float2(o[4 * j + 2 * r] * scale, o[4 * j + 2 * r + 1] * scale);
        }
    }

    template <class SCORE, class WEIGHT>
    static __device__ __forceinline__ void run(fuse_matrices<T> q, fuse_matrices<T> k, fuse_matrices<T> v, TO* to, const fuse_heads& to_strides, float* lse,
                                               const fuse_attention_shape& shape, unsigned* counters, float factor, const SCORE& score, const WEIGHT& weight)
    {
        extern __shared__ unsigned char fuse_memory[];
        Shared& shared = *(Shared*)(fuse_memory + (127 & -fuse_shared_at(fuse_memory)));
        if (threadIdx.x == 0) shared.ring.open(32, 4 * GROUPS);
        __syncthreads();
        // Registers that reading does not need go to those that multiply.
        if (threadIdx.x < FEEDERS) {
            if (GROUPS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
            feed(shared, k, v, shape, counters);
        } else {
            if (GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
            consume(shared, q, k, v, to, to_strides, lse, shape, factor, score, weight);
        }
    }
};
#endif
