// Products of floats on tensor cores, as exact as in float arithmetic.
//
// A float is the sum of three bfloat16, each the rest of the one before, rounded: x = x0 + x1 + x2, exactly, with |x1| <= 2^-8 |x|
// and |x2| <= 2^-16 |x|. Of the nine products of parts the six largest are summed, the smallest first; the others are below
// 2^-23 |a b|, and on the average far below. Tensor cores cut off what does not fit while they add, so sums over 16 inner positions
// are made there and added to the rest with rounding. The error is at most (k / 16 + 8) 2^-24 of the sum of |a b|, where that of
// a chain of floats is k 2^-24. After Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance" (2022), and Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence
// datatype for higher-precision computations" (2019).

// The least value of those met that is not 0: below 2^-100 a part may be too small for a bfloat16.
struct fuse_least {
    unsigned of = ~0u;
    __device__ __forceinline__ void meet(float x) { of = min(of, __float_as_uint(x) * 2u - 1u); }
    __device__ __forceinline__ bool is_tiny() const { return of < 27u << 24; }
};

// A block computes 128 rows and SIZE columns at a time. Four warps read the right operand, split it and leave its parts in
// shared memory, 32 inner positions a stage. The others have 16 rows each: they split the left operand in registers and
// multiply. L and R say how the operands lie, as in `fuse_packs`; unless it is 0, the number of inner positions is a multiple of 8.
// Of N products with one left operand it computes as many columns each, a multiple of 32.
template <int SIZE, int L, int R, int N = 1> struct fuse_thirds {
    static constexpr int EACH = SIZE / N;
    typedef fuse_part<128, EACH> Part;
    static constexpr int DEPTH = 16, STAGES = 4, MARKS = STAGES + 2, SUM = 64, SUMS = SIZE / SUM;
    // As many steps as there are registers for before sums are awaited.
    static constexpr int STEPS = SIZE > 128 ? 1 : 2;
    // 16 bytes of a column's neighbours along k lie next to each other, and the next 16 so far on, in different banks.
    static constexpr int NEXT = SIZE * 16 + (R == 1 ? 64 : 0), PART = 2 * NEXT, PACKS = SIZE * 2 / 128;

    struct Shared {
        unsigned char stage[STAGES][2][3 * PART];
        fuse_ring<STAGES> ring;
        // The numbers of the last tiles in which the right operand has tiny values. A tile's mark is read when its last stage has
        // been given back, and by then those who feed may have filled all stages with one tile each.
        unsigned tiny[MARKS];
        typename fuse_turn<SIZE>::Shared turn;
    };

    Shared& shared;
    fuse_lap<STAGES> lap;
    unsigned number = 0;

    __device__ __forceinline__ fuse_thirds(void* at) : shared(*(Shared*)at)
    {
        if (threadIdx.x == 0) {
            shared.ring.open(128, 2);
            for (unsigned& mark : shared.tiny) mark = 0;
        }
        __syncthreads();
    }

    // Whether a thread is one of those that read and split the right operand.
    static __device__ __forceinline__ bool feeds() { return threadIdx.x < 128; }

    // First of all, those leave the others most of the registers: together they may have as many as 384 threads start with.
    static __device__ __forceinline__ void few_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 88;"); }
    static __device__ __forceinline__ void many_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 208;"); }

    static __device__ __forceinline__ int row(int i) { return (threadIdx.x - 128) / 32 * 16 + threadIdx.x % 32 / 4 + i * 8; }
    // Which column and which half of the inner positions a pack of eight elements is of.
    static __device__ __forceinline__ int x(int pack)
    {
        const int n = threadIdx.x + 128 * pack;
        return R == 1 ? n / 2 : n % SIZE;
    }
    static __device__ __forceinline__ int half(int pack)
    {
        const int n = threadIdx.x + 128 * pack;
        return R == 1 ? n % 2 : n / SIZE;
    }

    // Reads a pack of the right operand at k. Beyond the last inner position it repeats others, which meet zeros of the left one.
    static __device__ __forceinline__ void read(float (&of)[8], const float* from, const fuse_sides<float, N>& right, int k)
    {
        const int end = (int)right.k_end;
        if (R == 1) {
            from += min(k, end - 8);
            const float4 first = ((const float4*)from)[0], second = ((const float4*)from)[1];
            of[0] = first.x, of[1] = first.y, of[2] = first.z, of[3] = first.w;
            of[4] = second.x, of[5] = second.y, of[6] = second.z, of[7] = second.w;
        } else if (R == 2) {
            from += min(k, end - 8) * right.k_stride;
#pragma unroll
            for (int e = 0; e < 8; ++e, from += right.k_stride) of[e] = *from;
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e) of[e] = from[min(k + e, end - 1) * right.k_stride];
        }
    }

    // A column of the tile in its right operand; beyond the last one it repeats that.
    static __device__ __forceinline__ const float* column(const fuse_sides<float, N>& right, int x)
    {
        return right.of(x / EACH) + min(x % EACH, right.x_end - 1) * right.x_stride;
    }

    // The right operand of a tile, part by part into shared memory.
    __device__ __forceinline__ void feed(const fuse_sides<float, N>& right)
    {
        ++number;
        if (right.k_end == 0) return;
        fuse_least least;
        const float* from[PACKS];
        float of[2][PACKS][8];
#pragma unroll
        for (int pack = 0; pack < PACKS; ++pack) {
            from[pack] = column(right, x(pack));
#pragma unroll
            for (int step = 0; step < 2; ++step) read(of[step][pack], from[pack], right, step * DEPTH + half(pack) * 8);
        }
        for (int k = 0; k < (int)right.k_end; k += 2 * DEPTH) {
            shared.ring.await(shared.ring.empty[lap.stage], lap.parity ^ 1);
#pragma unroll
            for (int step = 0; step < 2; ++step) {
#pragma unroll
                for (int pack = 0; pack < PACKS; ++pack) {
                    unsigned parts[3][4];
#pragma unroll
                    for (int pair = 0; pair < 4; ++pair) {
                        const float low = of[step][pack][2 * pair], high = of[step][pack][2 * pair + 1];
                        least.meet(low);
                        least.meet(high);
                        fuse_third_pair(parts, pair, low, high);
                    }
                    unsigned char* to = shared.stage[lap.stage][step] + half(pack) * NEXT + x(pack) * 16;
#pragma unroll
                    for (int part = 0; part < 3; ++part)
                        *(uint4*)(to + part * PART) = make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
                    read(of[step][pack], from[pack], right, k + (2 + step) * DEPTH + half(pack) * 8);
                }
            }
            if (least.is_tiny()) shared.tiny[number % MARKS] = number;
            // What was written is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            shared.ring.arrive(shared.ring.full[lap.stage]);
            lap.next();
        }
    }

    // Four elements of either row of a thread, and their parts.
    struct Rows {
        const float* from[2];
        float of[2][4];
        fuse_least least;

        __device__ __forceinline__ Rows(const fuse_side<float>& left)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i) from[i] = left.from + min(row(i), left.x_end - 1) * left.x_stride;
        }

        static __device__ __forceinline__ int inner(int e) { return e / 2 * 8 + threadIdx.x % 4 * 2 + e % 2; }

        // Four elements of either row from k on, 0 beyond the last inner position.
        __device__ __forceinline__ void read(const fuse_side<float>& left, int k)
        {
            const int end = (int)left.k_end;
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                const int at = k + inner(e);
                const long long offset = at * (L == 1 ? 1 : left.k_stride);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float* from = this->from[i] + offset;
                    if (L == 1) {
                        const float2 two = at < end ? *(const float2*)from : make_float2(0, 0);
                        of[i][e] = two.x, of[i][e + 1] = two.y;
                    } else {
                        of[i][e] = at < end ? *from : 0.f;
                        of[i][e + 1] = at + 1 < end ? from[left.k_stride] : 0.f;
                    }
                }
            }
        }

        __device__ __forceinline__ void split(unsigned (&parts)[3][4])
        {
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                const float low = of[pair % 2][pair / 2 * 2], high = of[pair % 2][pair / 2 * 2 + 1];
                least.meet(low);
                least.meet(high);
                fuse_third_pair(parts, pair, low, high);
            }
        }
    };

    static __device__ __forceinline__ void add(float (&product)[SIZE / 2], const float (&sum)[SUM / 2], int n)
    {
#pragma unroll
        for (int j = 0; j < SUM / 2; ++j) product[n * SUM / 2 + j] += sum[j];
    }

    // A tile of the product. While a sum is on its way, the one before is added to the rest.
    __device__ __forceinline__ void multiply(float (&product)[SIZE / 2], const fuse_side<float>& left, const fuse_sides<float, N>& right)
    {
        ++number;
        Rows rows(left);
        unsigned parts[STEPS][3][4];
        float sum[2][SUM / 2];
        rows.read(left, 0);
        rows.split(parts[0]);
        rows.read(left, DEPTH);
        for (int k = 0; k < (int)left.k_end; k += 2 * DEPTH) {
            shared.ring.await(shared.ring.full[lap.stage], lap.parity);
#pragma unroll
            for (int first = 0; first < 2; first += STEPS) {
#pragma unroll
                for (int step = 0; step < STEPS; ++step) {
#pragma unroll
                    for (int n = 0; n < SUMS; ++n) {
                        const int now = (step * SUMS + n) % 2;
                        const unsigned long long right_0 = fuse_pieces(shared.stage[lap.stage][first + step] + n * SUM * 16, NEXT, 128);
                        const unsigned long long right_1 = right_0 + PART / 16, right_2 = right_1 + PART / 16;
                        fuse_wgmma_begin();
                        fuse_wgmma(sum[now], parts[step][2], right_0, 0);
                        fuse_wgmma(sum[now], parts[step][1], right_1, 1);
                        fuse_wgmma(sum[now], parts[step][0], right_2, 1);
                        fuse_wgmma(sum[now], parts[step][1], right_0, 1);
                        fuse_wgmma(sum[now], parts[step][0], right_1, 1);
                        fuse_wgmma(sum[now], parts[step][0], right_0, 1);
                        fuse_wgmma_end();
                        if (step + n > 0) {
                            fuse_wgmma_await<1>(sum[now ^ 1]);
                            add(product, sum[now ^ 1], (n + SUMS - 1) % SUMS);
                        }
                        if (STEPS == 2 && n == 0) {
                            rows.split(parts[step ^ 1]);
                            rows.read(left, k + (2 + step) * DEPTH);
                        }
                    }
                }
                constexpr int last = (STEPS * SUMS + 1) % 2;
                fuse_wgmma_await<0>(sum[last]);
                if (STEPS == 1) {
                    rows.split(parts[0]);
                    rows.read(left, k + (2 + first) * DEPTH);
                }
                if (first + STEPS == 2 && threadIdx.x % 128 == 0) shared.ring.arrive(shared.ring.empty[lap.stage]);
                add(product, sum[last], SUMS - 1);
            }
            lap.next();
        }
        bool again = rows.least.is_tiny() || shared.tiny[number % MARKS] == number;
#pragma unroll
        for (int j = 0; j < SIZE / 2; ++j) again |= !(fabsf(product[j]) <= 3.402823466e38f);
        if (__any_sync(~0u, again)) multiply_plainly(product, left, right);
    }

    // What a warp has of a tile in float arithmetic, where values are too small for their parts, or not finite: 32 columns at a
    // time, since what is known of more would take registers from the way that is usual.
    static __device__ __forceinline__ void multiply_plainly(float (&product)[SIZE / 2], const fuse_side<float>& left, const fuse_sides<float, N>& right)
    {
        const float* rows[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) rows[i] = left.from + min(row(i), left.x_end - 1) * left.x_stride;
#pragma unroll 1
        for (int piece = 0; piece < SIZE / 32; ++piece) {
            float some[16] = {};
#pragma unroll 1
            for (long long k = 0; k < left.k_end; ++k) {
                const float a[2] = {rows[0][k * left.k_stride], rows[1][k * left.k_stride]};
#pragma unroll
                for (int j = 0; j < 16; ++j) {
                    const int x = piece * 32 + j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2;
                    const float b = column(right, x)[k * right.k_stride];
                    some[j] = __fmaf_rn(a[j / 2 % 2], b, some[j]);
                }
            }
#pragma unroll
            for (int j = 0; j < SIZE / 2; ++j)
                if (j / 16 == piece) product[j] = some[j % 16];
        }
    }
};
