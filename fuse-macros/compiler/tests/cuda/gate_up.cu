// gate_up

// A kernel may be started while the one before it still runs: it waits here until all of that is done and seen, so
// nothing may come before. One with so few blocks that all of them run at a time lets the next be started at once.
static __device__ __forceinline__ void fuse_behind()
{
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 264) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// bfloat16: the upper half of a float, computed in float.
struct fuse_bf16 { unsigned short bits; };

static __device__ __forceinline__ float fuse_to_compute(fuse_bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

static __device__ __forceinline__ fuse_bf16 fuse_to_bf16(float x)
{
    fuse_bf16 narrow;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
#else
    // To nearest, ties to even; every NaN becomes the one the instruction gives.
    const unsigned bits = __float_as_uint(x);
    narrow.bits = x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
    return narrow;
}

static __device__ __forceinline__ float fuse_to_compute(float x) { return x; }
static __device__ __forceinline__ double fuse_to_compute(double x) { return x; }
static __device__ __forceinline__ long long fuse_to_compute(long long x) { return x; }
static __device__ __forceinline__ int fuse_to_compute(int x) { return x; }
static __device__ __forceinline__ unsigned char fuse_to_compute(unsigned char x) { return x; }
static __device__ __forceinline__ bool fuse_to_compute(bool x) { return x; }

// The element type T of what is computed in a wider one: to nearest and ties to even.
template <class T> struct fuse_element {
    template <class C> static __device__ __forceinline__ T of(C x) { return x; }
    template <class C> static __device__ __forceinline__ C rounded(C x) { return of(x); }

    static constexpr bool IN_PAIRS = false;
    static __device__ __forceinline__ T of_bits(unsigned bits) { return (T)(bits & 0xff); }
    static __device__ __forceinline__ unsigned bits(T x) { return x; }
};

template <> struct fuse_element<fuse_bf16> {
    static __device__ __forceinline__ fuse_bf16 of(float x) { return fuse_to_bf16(x); }
    static __device__ __forceinline__ fuse_bf16 of_bits(unsigned bits) { return {(unsigned short)bits}; }
    static __device__ __forceinline__ unsigned bits(fuse_bf16 x) { return x.bits; }

#if __CUDA_ARCH__ >= 800
    static constexpr bool IN_PAIRS = true;
    static __device__ __forceinline__ unsigned pair(float low, float high)
    {
        unsigned both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }

    // The upper of a pair lies where a float has it.
    static __device__ __forceinline__ float rounded(float x) { return __uint_as_float(pair(0.0f, x)); }
#else
    static constexpr bool IN_PAIRS = false;
    static __device__ __forceinline__ float rounded(float x) { return fuse_to_compute(fuse_to_bf16(x)); }
#endif
};

// A value of the compute type, rounded to the element type T.
template <class T, class C> static __device__ __forceinline__ C fuse_rounded(C x) { return fuse_element<T>::rounded(x); }

// Extents of the axes a kernel runs over; a division by one of them is a multiplication where positions are ints.
struct fuse_divisor { IDX extent; unsigned magic, shift; };
template <int N> struct fuse_extents { long long points; fuse_divisor axis[N]; };
template <int N> struct fuse_strides { IDX axis[N]; };
template <int N> struct fuse_at { IDX axis[N]; };

static __device__ __forceinline__ int fuse_divide(int n, const fuse_divisor& by)
{
    return (int)((__umulhi((unsigned)n, by.magic) + (unsigned)n) >> by.shift);
}

static __device__ __forceinline__ long long fuse_divide(long long n, const fuse_divisor& by)
{
    return n / by.extent;
}

template <int N> static __device__ __forceinline__ fuse_at<N> fuse_unravel(IDX n, const fuse_extents<N>& extents)
{
    fuse_at<N> at;
#pragma unroll
    for (int k = N - 1; k > 0; --k) {
        const IDX outer = fuse_divide(n, extents.axis[k]);
        at.axis[k] = n - outer * extents.axis[k].extent;
        n = outer;
    }
    at.axis[0] = n;
    return at;
}

// The distance of a place from the first element; the axes of `at` are those of `strides` from FROM on. STEP is how far
// neighbours along the last axis are apart where the text knows it: 0 not at all, 1 one element.
template <int STEP = 2, int FROM = 0, int N, int M>
static __device__ __forceinline__ IDX fuse_offset(const fuse_at<N>& at, const fuse_strides<M>& strides)
{
    IDX offset = STEP == 0 ? 0 : STEP == 1 ? at.axis[N - 1] : at.axis[N - 1] * strides.axis[FROM + N - 1];
#pragma unroll
    for (int k = 0; k < N - 1; ++k) offset += at.axis[k] * strides.axis[FROM + k];
    return offset;
}

template <int BYTES> struct fuse_word { using Type = uint4; };
template <> struct fuse_word<8> { using Type = uint2; };
template <> struct fuse_word<4> { using Type = unsigned; };
template <> struct fuse_word<2> { using Type = unsigned short; };
template <> struct fuse_word<1> { using Type = unsigned char; };

// N neighbouring elements in registers, as they lie in memory: small ones share a register.
template <class T, int N, bool SMALL = sizeof(T) < 4> struct fuse_pack {
    struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Memory { T of[N]; } all;

    __device__ __forceinline__ T operator[](int k) const { return all.of[k]; }
    __device__ __forceinline__ void set(int k, T x) { all.of[k] = x; }
    __device__ __forceinline__ void load(const T* from) { all = *(const Memory*)from; }
    __device__ __forceinline__ void store(T* to) const { *(Memory*)to = all; }

    template <class C> __device__ __forceinline__ void narrow(const C (&from)[N])
    {
#pragma unroll
        for (int k = 0; k < N; ++k) set(k, fuse_element<T>::of(from[k]));
    }
};

template <class T, int N> struct fuse_pack<T, N, true> {
    static constexpr int BITS = 8 * sizeof(T), IN_WORD = 32 / BITS, WORDS = (N + IN_WORD - 1) / IN_WORD;
    using Memory = typename fuse_word<sizeof(T) * N>::Type;
    unsigned word[WORDS];

    __device__ __forceinline__ T operator[](int k) const
    {
        return fuse_element<T>::of_bits(word[k / IN_WORD] >> k % IN_WORD * BITS);
    }

    // Elements are set in order.
    __device__ __forceinline__ void set(int k, T x)
    {
        const unsigned bits = fuse_element<T>::bits(x) << k % IN_WORD * BITS;
        word[k / IN_WORD] = k % IN_WORD == 0 ? bits : word[k / IN_WORD] | bits;
    }

    __device__ __forceinline__ void load(const T* from)
    {
        const Memory memory = *(const Memory*)from;
        if constexpr (WORDS == 1) {
            word[0] = memory;
        } else {
            word[0] = memory.x;
            word[1] = memory.y;
            if constexpr (WORDS == 4) {
                word[2] = memory.z;
                word[3] = memory.w;
            }
        }
    }

    __device__ __forceinline__ void store(T* to) const
    {
        if constexpr (WORDS == 1) *(Memory*)to = (Memory)word[0];
        else if constexpr (WORDS == 2) *(Memory*)to = make_uint2(word[0], word[1]);
        else *(Memory*)to = make_uint4(word[0], word[1], word[2], word[3]);
    }

    template <class C> __device__ __forceinline__ void narrow(const C (&from)[N])
    {
        if constexpr (fuse_element<T>::IN_PAIRS && N > 1) {
#pragma unroll
            for (int k = 0; k < WORDS; ++k) word[k] = fuse_element<T>::pair(from[2 * k], from[2 * k + 1]);
        } else {
#pragma unroll
            for (int k = 0; k < N; ++k) set(k, fuse_element<T>::of(from[k]));
        }
    }
};

// Reads N neighbouring points. STEP says how far apart they are: 0 the same element, 1 the next, 2 `stride` elements on.
// Points from `live` on do not exist and repeat the first one.
template <int STEP, class T, int N>
static __device__ __forceinline__ void fuse_read(fuse_pack<T, N>& to, const T* from, IDX stride, int live = N)
{
    if (STEP == 1 && live == N) return to.load(from);
    if (STEP < 2) stride = STEP;
    const T first = from[0];
#pragma unroll
    for (int k = 0; k < N; ++k) to.set(k, STEP > 0 && k > 0 && k < live ? from[k * stride] : first);
}

// Writes N neighbouring points, each rounded to the element type.
template <int STEP, class T, int N, class C>
static __device__ __forceinline__ void fuse_write(T* to, const C (&from)[N], IDX stride, int live = N)
{
    if (STEP == 1 && live == N) {
        fuse_pack<T, N> pack;
        pack.narrow(from);
        return pack.store(to);
    }
    if (STEP < 2) stride = STEP;
#pragma unroll
    for (int k = 0; k < N; ++k) if (k < live) to[k * stride] = fuse_element<T>::of(from[k]);
}

// Another lane's value, word by word: of a butterfly, or of the first lane.
template <class A, class F> static __device__ __forceinline__ A fuse_exchange(A x, F of_word)
{
    constexpr int WORDS = (sizeof(A) + 3) / 4;
    union Words {
        A value;
        unsigned word[WORDS];
        __device__ __forceinline__ Words() : word{} {}
    } own, other;
    own.value = x;
#pragma unroll
    for (int k = 0; k < WORDS; ++k) other.word[k] = of_word(own.word[k]);
    return other.value;
}

template <class A> static __device__ __forceinline__ A fuse_shuffle(A x, int stride)
{
    return fuse_exchange(x, [=](unsigned word) { return __shfl_xor_sync(0xffffffffu, word, stride); });
}

template <class A> static __device__ __forceinline__ A fuse_from_first(A x)
{
    return fuse_exchange(x, [](unsigned word) { return __shfl_sync(0xffffffffu, word, 0); });
}

// The tree over the values of N neighbouring lanes of a warp, known to each of them.
template <class R, int N, class A> static __device__ __forceinline__ A fuse_over_lanes(A x)
{
#pragma unroll
    for (int s = 1; s < N; s *= 2) x = R::join(x, fuse_shuffle(x, s));
    return x;
}

// The canonical row order: element e of a block of 16384 goes to lane e % 1024, lanes join in a tree of strides 1, 2, 4 .. 512.
// Thread t of a team holds lanes GROUP * TEAM * PER + t * PER + v; groups no element reaches are neutral and left out.
template <class R, int TEAM_SIZE, int PER, int GROUPS> struct fuse_lanes {
    using Acc = typename R::Acc;
    Acc lane[GROUPS][PER];

    __device__ __forceinline__ fuse_lanes()
    {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
            for (int v = 0; v < PER; ++v) lane[g][v] = R::none();
    }

    __device__ __forceinline__ void add(int item, int v, Acc x)
    {
        lane[item % GROUPS][v] = R::join(lane[item % GROUPS][v], x);
    }

    // Joins the neighbouring lanes of one group, once all of its elements are there.
    __device__ __forceinline__ void fold(int g)
    {
#pragma unroll
        for (int s = 1; s < PER; s *= 2)
#pragma unroll
            for (int v = 0; v + s < PER; v += 2 * s) lane[g][v] = R::join(lane[g][v], lane[g][v + s]);
    }

    // The value of all lanes, known to every thread of the team. FOLDED: every group has been folded.
    template <bool FOLDED = false> __device__ __forceinline__ Acc total()
    {
        Acc group[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            if (!FOLDED) fold(g);
            group[g] = fuse_over_lanes<R, 32>(lane[g][0]);
        }
        if constexpr (TEAM_SIZE > 32) {
            constexpr int WARPS = TEAM_SIZE / 32;
            __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * GROUPS * WARPS];
            Acc* warps = (Acc*)bytes;
            __syncthreads();
            if (threadIdx.x % 32 == 0) {
#pragma unroll
                for (int g = 0; g < GROUPS; ++g) warps[g * WARPS + threadIdx.x / 32] = group[g];
            }
            __syncthreads();
            if constexpr (WARPS == 32) {
                return fuse_over_lanes<R, 32>(warps[threadIdx.x % 32]);
            }
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                Acc warp[WARPS];
#pragma unroll
                for (int w = 0; w < WARPS; ++w) warp[w] = warps[g * WARPS + w];
#pragma unroll
                for (int s = 1; s < WARPS; s *= 2)
#pragma unroll
                    for (int w = 0; w + s < WARPS; w += 2 * s) warp[w] = R::join(warp[w], warp[w + s]);
                group[g] = warp[0];
            }
        }
#pragma unroll
        for (int s = 1; s < GROUPS; s *= 2)
#pragma unroll
            for (int g = 0; g + s < GROUPS; g += 2 * s) group[g] = R::join(group[g], group[g + s]);
        return group[0];
    }
};

// Whether this block is the last of `blocks` to come here; what the others wrote before is visible to it. The counter is 0 again after.
static __device__ __forceinline__ bool fuse_last(unsigned* counter, unsigned blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// Reads what another block of this launch wrote, past the first-level cache.
template <class A> static __device__ __forceinline__ A fuse_fresh(const A* from)
{
    union Words {
        A value;
        unsigned word[(sizeof(A) + 3) / 4];
        __device__ __forceinline__ Words() : word{} {}
    } to;
    const unsigned* const words = (const unsigned*)from;
    if constexpr (sizeof(A) == 1) {
        asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=r"(to.word[0]) : "l"(from) : "memory");
    } else if constexpr (alignof(A) == 16) {
#pragma unroll
        for (int k = 0; k < (int)(sizeof(A) / 4); k += 4)
            asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to.word[k]), "=r"(to.word[k + 1]), "=r"(to.word[k + 2]), "=r"(to.word[k + 3]) : "l"(words + k) : "memory");
    } else {
#pragma unroll
        for (int k = 0; k < (int)(sizeof(A) / 4); ++k)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(to.word[k]) : "l"(words + k) : "memory");
    }
    return to.value;
}

// Strides of a matrix: batch axes, then its two axes.
struct fuse_matrix { long long axis[5]; };
// Extents of a product: batch axes, rows, columns, inner extent.
struct fuse_shape { long long batch[3], m, n, k; };

// An operand from the first row (or column) of a block's tile on: x counts its rows (or columns), k inner positions.
template <class T> struct fuse_side { const T* from; long long x_stride, k_stride; int x_end; long long k_end; };

// The right operands of N products, which lie alike.
template <class T, int N> struct fuse_sides {
    const T* from[N];
    long long x_stride, k_stride;
    int x_end;
    long long k_end;

    __device__ __forceinline__ fuse_side<T> operator[](int n) const { return {from[n], x_stride, k_stride, x_end, k_end}; }

    // The one that is asked for where that is known only when the kernel runs: registers have no addresses.
    __device__ __forceinline__ const T* of(int which) const
    {
        const T* found = from[0];
#pragma unroll
        for (int n = 1; n < N; ++n) found = which == n ? from[n] : found;
        return found;
    }
};

// What a block computes of a product: M rows from m and N columns from n on, at one place of the batch axes. Neighbouring tiles
// take turns with eight rows of tiles, so that those computed at the same time read few rows and columns.
template <int M, int N> struct fuse_part {
    static constexpr unsigned TURN = 8;
    fuse_at<3> batch;
    long long m, n;

    __device__ __forceinline__ fuse_part(unsigned tile, const fuse_shape& shape)
    {
        const unsigned across = (unsigned)((shape.n + N - 1) / N), down = (unsigned)((shape.m + M - 1) / M);
        const unsigned place = tile / (across * down);
        tile -= place * across * down;
        const unsigned first = tile / (TURN * across) * TURN, rows = min(down - first, TURN);
        tile -= first * across;
        m = (long long)(first + tile % rows) * M;
        n = (long long)(tile / rows) * N;
        const unsigned two = place / (unsigned)shape.batch[2], one = two / (unsigned)shape.batch[1];
        batch = {(IDX)one, (IDX)(two - one * (unsigned)shape.batch[1]), (IDX)(place - two * (unsigned)shape.batch[2])};
    }

    // How many of them there are.
    static __device__ __forceinline__ unsigned count(const fuse_shape& shape)
    {
        return (unsigned)((shape.n + N - 1) / N * ((shape.m + M - 1) / M) * shape.batch[0] * shape.batch[1] * shape.batch[2]);
    }

    __device__ __forceinline__ long long start(const fuse_matrix& strides) const
    {
        return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
    }

    template <class T>
    __device__ __forceinline__ fuse_side<T> left(const T* from, const fuse_matrix& strides, const fuse_shape& shape) const
    {
        const long long x_stride = strides.axis[3], k_stride = strides.axis[4];
        return {from + start(strides) + m * x_stride, x_stride, k_stride, (int)min(shape.m - m, (long long)M), shape.k};
    }

    template <class T>
    __device__ __forceinline__ fuse_side<T> right(const T* from, const fuse_matrix& strides, const fuse_shape& shape) const
    {
        const long long x_stride = strides.axis[4], k_stride = strides.axis[3];
        return {from + start(strides) + n * x_stride, x_stride, k_stride, (int)min(shape.n - n, (long long)N), shape.k};
    }

    // The same columns of several right operands.
    template <class T, class... MORE>
    __device__ __forceinline__ fuse_sides<T, 1 + sizeof...(MORE)> rights(const fuse_matrix& strides, const fuse_shape& shape, const T* from, const MORE*... more) const
    {
        const fuse_side<T> side = right(from, strides, shape);
        const long long to = side.from - from;
        return {{side.from, more + to...}, side.x_stride, side.k_stride, side.x_end, side.k_end};
    }
};

// What a thread carries of a tile, SIZE along x and DEPTH along k, from global to shared memory: packs of W elements.
// LIE says how the elements of a pack lie: 0 anywhere, 1 next to each other along k, 2 next to each other along x; in the
// last two cases packs are aligned. Elements outside the matrix are 0.
template <class T, int LIE, int SIZE, int DEPTH, int W> struct fuse_packs {
    static constexpr int THREADS = 2 * SIZE, COUNT = SIZE * DEPTH / W / THREADS;
    // From one pack of a thread to the next.
    static constexpr int X_STEP = LIE == 2 ? 0 : THREADS / (DEPTH / W), K_STEP = LIE == 2 ? THREADS / (SIZE / W) : 0;
    fuse_side<T> side;
    fuse_pack<T, W> of[COUNT];

    __device__ __forceinline__ fuse_packs(const fuse_side<T>& side) : side(side) {}

    // Where the first pack starts. Along k, 16 neighbouring threads take 16 neighbours in x: they write to different banks.
    static __device__ __forceinline__ int x()
    {
        const int n = threadIdx.x;
        return LIE == 2 ? n % (SIZE / W) * W : n / (16 * (DEPTH / W)) * 16 + n % 16;
    }

    static __device__ __forceinline__ int k()
    {
        const int n = threadIdx.x;
        return LIE == 2 ? n / (SIZE / W) : n / 16 % (DEPTH / W) * W;
    }

    // Reads the tile and moves on to the next one.
    __device__ __forceinline__ void read()
    {
        const long long x_step = LIE == 2 ? 1 : side.x_stride, k_step = LIE == 1 ? 1 : side.k_stride;
        const int k_end = (int)min(side.k_end, (long long)DEPTH);
        const T* from = side.from + (x() * x_step + k() * k_step);
#pragma unroll
        for (int pack = 0; pack < COUNT; ++pack) {
            const int x = this->x() + pack * X_STEP, k = this->k() + pack * K_STEP;
            if (LIE != 0 && x + (LIE == 2 ? W : 1) <= side.x_end && k + (LIE == 2 ? 1 : W) <= k_end) {
                of[pack].load(from);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) {
                    const bool inside = LIE == 2 ? x + w < side.x_end && k < k_end : x < side.x_end && k + w < k_end;
                    of[pack].set(w, inside ? from[w * (LIE == 2 ? x_step : k_step)] : T());
                }
            }
            from += X_STEP * x_step + K_STEP * k_step;
        }
        side.from += DEPTH * k_step;
        side.k_end -= DEPTH;
    }
};

static __device__ __forceinline__ float fuse_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fuse_multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
static __device__ __forceinline__ int fuse_multiply_add(int a, int b, int c)
{
    return (int)((unsigned)a * (unsigned)b + (unsigned)c);
}
static __device__ __forceinline__ long long fuse_multiply_add(long long a, long long b, long long c)
{
    return (long long)((unsigned long long)a * (unsigned long long)b + (unsigned long long)c);
}
static __device__ __forceinline__ unsigned char fuse_multiply_add(unsigned char a, unsigned char b, unsigned char c)
{
    return (unsigned char)(a * b + c);
}

// The part of a product that is a block's, tile after tile: while one pair of tiles is multiplied, the next one is on its way.
template <class P, class T, class A, int ROWS, int COLUMNS>
static __device__ __forceinline__ void fuse_multiply(A (&product)[ROWS][COLUMNS], const fuse_side<T>& left, const fuse_side<T>& right)
{
    __shared__ alignas(16) typename P::LeftTile left_tile[2];
    __shared__ alignas(16) typename P::RightTile right_tile[2];
    typename P::LeftPacks left_packs(left);
    typename P::RightPacks right_packs(right);
    left_packs.read();
    right_packs.read();
    for (long long k = 0, now = 0; k < left.k_end; k += P::DEPTH, now ^= 1) {
        P::put(left_tile[now], left_packs);
        P::put(right_tile[now], right_packs);
        __syncthreads();
        if (k + P::DEPTH < left.k_end) {
            left_packs.read();
            right_packs.read();
        }
        P::multiply(product, left_tile[now], right_tile[now]);
    }
}

// A tile of a product in plain arithmetic. Two warps lie side by side, SIZE / 32 below each other; a warp has 32 rows and
// SIZE / 2 columns, a thread of its 4 by 8 has fours of neighbouring rows and columns. Inner positions ascend.
template <class T, int SIZE, int L, int R> struct fuse_plain_product {
    typedef decltype(fuse_to_compute(T())) A;
    static constexpr int ROWS = 8, COLUMNS = SIZE / 16, DEPTH = 16, W = sizeof(T) < 8 ? 4 : 2;
    // Four more columns than are used keep what is turned on its way in different banks.
    typedef A Tile[DEPTH][SIZE + 4];
    typedef Tile LeftTile, RightTile;
    typedef fuse_packs<T, L, SIZE, DEPTH, W> LeftPacks;
    typedef fuse_packs<T, R, SIZE, DEPTH, W> RightPacks;

    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 64 * 32 + i / 4 * 16 + threadIdx.x % 32 / 8 * 4 + i % 4;
    }

    static __device__ __forceinline__ int column(int j)
    {
        return threadIdx.x / 32 % 2 * (SIZE / 2) + j / 4 * 32 + threadIdx.x % 8 * 4 + j % 4;
    }

    template <int LIE> static __device__ __forceinline__ void put(Tile& tile, const fuse_packs<T, LIE, SIZE, DEPTH, W>& packs)
    {
#pragma unroll
        for (int pack = 0; pack < packs.COUNT; ++pack) {
            const int x = packs.x() + pack * packs.X_STEP, k = packs.k() + pack * packs.K_STEP;
            fuse_pack<A, W> wide;
#pragma unroll
            for (int w = 0; w < W; ++w) wide.set(w, fuse_to_compute(packs.of[pack][w]));
            if (LIE == 2) {
                wide.store(&tile[k][x]);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) tile[k + w][x] = wide[w];
            }
        }
    }

    static __device__ __forceinline__ void multiply(A (&product)[ROWS][COLUMNS], const Tile& left_tile, const Tile& right_tile)
    {
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            fuse_pack<A, 4> left[ROWS / 4], right[COLUMNS / 4];
#pragma unroll
            for (int i = 0; i < ROWS; i += 4) left[i / 4].load(&left_tile[k][row(i)]);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) right[j / 4].load(&right_tile[k][column(j)]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    product[i][j] = fuse_multiply_add(left[i / 4][i % 4], right[j / 4][j % 4], product[i][j]);
        }
    }
};

template <class T, int SIZE, int L, int R> struct fuse_product : fuse_plain_product<T, SIZE, L, R> {};

// Products of few rows. They are as fast as their right operand can be read: a block takes a strip of columns, as wide as a
// cache line, and a range of inner positions, and has many reads of 16 bytes in flight. Its 8 warps share the range; what
// they come to is added in their order, and then what the blocks of a strip came to in theirs.

// What a block computes: rows from m and columns from n on at one place of the batch axes, inner positions from k to k_end, of one
// of so many products with one left operand.
template <int ROWS, int COLUMNS, int UNIT = 512> struct fuse_strip {
    fuse_at<3> batch;
    long long m, n, k, k_end;
    unsigned index, product, products, part, parts;

    __device__ __forceinline__ fuse_strip(const fuse_shape& shape, unsigned products) : products(products)
    {
        const unsigned across = (unsigned)((shape.n + COLUMNS - 1) / COLUMNS), down = (unsigned)((shape.m + ROWS - 1) / ROWS);
        const unsigned strips = across * down * (unsigned)(shape.batch[0] * shape.batch[1] * shape.batch[2]);
        index = blockIdx.x % strips;
        product = blockIdx.x / strips % products;
        part = blockIdx.x / strips / products;
        parts = gridDim.x / strips / products;
        n = (long long)(index % across) * COLUMNS;
        m = (long long)(index / across % down) * ROWS;
        const unsigned place = index / across / down;
        const unsigned two = place / (unsigned)shape.batch[2], one = two / (unsigned)shape.batch[1];
        batch = {(IDX)one, (IDX)(two - one * (unsigned)shape.batch[1]), (IDX)(place - two * (unsigned)shape.batch[2])};
        // Whole multiples of what the warps take at once.
        const long long range = ((shape.k + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
        k = min(shape.k, part * range);
        k_end = min(shape.k, k + range);
    }

    __device__ __forceinline__ long long start(const fuse_matrix& strides) const
    {
        return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
    }
};

// W elements, `stride` apart; those from `live` on are 0. Of a RUN all are there or none.
template <bool RUN, class T, int W>
static __device__ __forceinline__ void fuse_read_some(fuse_pack<T, W>& to, const T* from, long long stride, long long live)
{
    if (RUN && live > 0) return to.load(from);
#pragma unroll
    for (int w = 0; w < W; ++w) to.set(w, !RUN && w < live ? from[w * stride] : T());
}

// Brings one element into shared memory, or 0; behind the thread where it can.
template <class A, class T> static __device__ __forceinline__ void fuse_put(A* to, const T* from, bool there)
{
    *to = there ? fuse_to_compute(*from) : A();
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void fuse_put(float* to, const float* from, bool there)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(there ? 4 : 0) : "memory");
}
#endif

// Plain arithmetic. Where columns are neighbours, 8 threads have W columns each of 32 inner positions at once; else each warp
// has W columns of its own, and its threads W inner positions each.
template <class T, int N, int R> struct fuse_skinny {
    typedef decltype(fuse_to_compute(T())) A;
    static constexpr int ROWS = N, W = sizeof(T) == 1 ? 4 : 16 / sizeof(T), COLUMNS = 8 * W;
    static constexpr bool ALONG = R == 1;
    // Inner positions for which the rows lie in shared memory, those of one read, and reads at once.
    static constexpr int CHUNK = 32768 / ROWS / sizeof(A), PASS = ALONG ? 32 * W : 32, AHEAD = !ALONG ? 8 : W < 8 ? 2 : 1;
    typedef fuse_strip<ROWS, COLUMNS, sizeof(T) < 4 ? 256 : 512> Strip;
    struct Packs { fuse_pack<T, W> of[ALONG ? AHEAD * W : AHEAD]; };
    typedef A Sums[ALONG ? 1 : 8][ROWS][COLUMNS];

    // The rows on their way in.
    static __device__ __forceinline__ A* rows()
    {
        extern __shared__ uint4 fuse_shared[];
        return (A*)fuse_shared;
    }

    // The values of all warps on their way out, in the same place.
    static __device__ __forceinline__ Sums& sums() { return *(Sums*)rows(); }

    static __device__ __forceinline__ int column()
    {
        return ALONG ? threadIdx.x / 32 * W : threadIdx.x % 8 * W;
    }

    static __device__ __forceinline__ int place(int pass) { return ALONG ? (pass * 32 + threadIdx.x % 32) * W : pass * 32 + threadIdx.x / 8; }

    static __device__ __forceinline__ void read(Packs& packs, const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides, long long k)
    {
#pragma unroll
        for (int pass = 0; pass < AHEAD; ++pass) {
            const long long at = k + place(pass), n = strip.n + column();
            if constexpr (ALONG) {
#pragma unroll
                for (int c = 0; c < W; ++c) {
                    const long long live = n + c < shape.n ? strip.k_end - at : 0;
                    fuse_read_some<true>(packs.of[pass * W + c], right + at + (n + c) * strides.axis[4], 1, live);
                }
            } else {
                const long long live = at < strip.k_end ? shape.n - n : 0;
                const long long step = R == 2 ? 1 : strides.axis[4];
                fuse_read_some<R == 2>(packs.of[pass], right + at * strides.axis[3] + n * step, step, live);
            }
        }
    }

    static __device__ __forceinline__ void stage(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& strides, long long from)
    {
        const int count = (int)min((long long)CHUNK, (strip.k_end - from + AHEAD * PASS - 1) / (AHEAD * PASS) * (AHEAD * PASS));
#pragma unroll 4
        for (int n = threadIdx.x; n < ROWS * count; n += 256) {
            const int row = n / count, k = n % count;
            const bool inside = strip.m + row < shape.m && from + k < strip.k_end;
            const T* x = left + (inside ? (strip.m + row) * strides.axis[3] + (from + k) * strides.axis[4] : 0);
            fuse_put(&rows()[ALONG ? row * CHUNK + k : k * ROWS + row], x, inside);
        }
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    }

    static __device__ __forceinline__ void multiply(A (&sum)[ROWS][W], const Packs& packs, int from)
    {
#pragma unroll
        for (int pass = 0; pass < AHEAD; ++pass) {
            const int at = from + place(pass);
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int c = 0; c < W; ++c) {
                    if constexpr (ALONG) {
#pragma unroll
                        for (int w = 0; w < W; ++w)
                            sum[row][c] = fuse_multiply_add(rows()[row * CHUNK + at + w], fuse_to_compute(packs.of[pass * W + c][w]), sum[row][c]);
                    } else {
                        sum[row][c] = fuse_multiply_add(rows()[at * ROWS + row], fuse_to_compute(packs.of[pass][c]), sum[row][c]);
                    }
                }
        }
    }

    // Leaves what every warp came to in shared memory.
    static __device__ __forceinline__ void run(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& left_strides, const T* right, const fuse_matrix& right_strides)
    {
        A sum[ROWS][W] = {};
        Packs packs;
        for (long long from = strip.k; from < strip.k_end; from += CHUNK) {
            read(packs, strip, shape, right, right_strides, from);
            __syncthreads();
            stage(strip, shape, left, left_strides, from);
            __syncthreads();
            for (int k = 0; k < CHUNK && from + k < strip.k_end; k += AHEAD * PASS) {
                if (k > 0) read(packs, strip, shape, right, right_strides, from + k);
                multiply(sum, packs, k);
            }
        }
        __syncthreads();
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
#pragma unroll
            for (int c = 0; c < W; ++c) {
                A x = sum[row][c];
#pragma unroll
                for (int s = ALONG ? 1 : 8; s < 32; s *= 2) x = fuse_multiply_add(x, (A)1, fuse_shuffle(x, s));
                if (ALONG && threadIdx.x % 32 == 0) sums()[0][row][column() + c] = x;
                if (!ALONG && threadIdx.x % 32 < 8) sums()[threadIdx.x / 32][row][column() + c] = x;
            }
        __syncthreads();
    }

    static __device__ __forceinline__ A total(int row, int column)
    {
        A x = sums()[0][row][column];
#pragma unroll
        for (int warp = 1; warp < (ALONG ? 1 : 8); ++warp) x = fuse_multiply_add(sums()[warp][row][column], (A)1, x);
        return x;
    }
};

// Adds up what the warps of a block and the blocks of a strip came to, into `result` for each of N products. Whether this block is
// the one that goes on.
template <class P, int N> static __device__ __forceinline__ bool fuse_settle(const typename P::Strip& strip, const fuse_shape& shape, typename P::A (&result)[N][P::ROWS][P::COLUMNS], typename P::A* parts, unsigned* counters)
{
    constexpr int SIZE = P::ROWS * P::COLUMNS;
    const int live = (int)min((long long)P::ROWS, shape.m - strip.m) * P::COLUMNS;
    const unsigned blocks = N * strip.parts;
    parts += (long long)strip.index * blocks * SIZE;
    for (int n = threadIdx.x; n < live; n += 256) {
        const typename P::A x = P::total(n / P::COLUMNS, n % P::COLUMNS);
        if (blocks == 1) (&result[0][0][0])[n] = x;
        else parts[(strip.product * strip.parts + strip.part) * SIZE + n] = x;
    }
    if (blocks > 1) {
        if (!fuse_last(counters + strip.index, blocks)) return false;
#pragma unroll
        for (int product = 0; product < N; ++product) {
            const typename P::A* const own = parts + product * strip.parts * SIZE;
            for (int n = threadIdx.x; n < live; n += 256) {
                typename P::A x = fuse_fresh(own + n);
#pragma unroll 4
                for (int part = 1; part < strip.parts; ++part) x = fuse_multiply_add(fuse_fresh(own + part * SIZE + n), (typename P::A)1, x);
                (&result[product][0][0])[n] = x;
            }
        }
    }
    __syncthreads();
    return true;
}

// Products of few rows of halves. They are as fast as their right operand can be read, in one launch with what follows. Where that lies in
// runs along the inner axis, warps have columns of their own, or share the inner positions of one; every thread has its reads of
// 16 bytes in flight before it multiplies, and reads the rows from the first-level cache.
template <class T, int N, int L, int R, int C> struct fuse_slim {
    typedef float A;
    static constexpr int ROWS = N, COLUMNS = C, W = 8, WARPS = 8;
    // Columns of a warp, and warps that share inner positions.
    static constexpr int OWN = COLUMNS > WARPS ? COLUMNS / WARPS : 1, TOGETHER = COLUMNS < WARPS ? WARPS / COLUMNS : 1;
    // Inner positions of the reads that warps do at once, and how many of them are in flight.
    static constexpr int PASS = TOGETHER * 32 * W, AHEAD = 4;
    typedef fuse_strip<ROWS, COLUMNS> Strip;
    typedef A Sums[TOGETHER][ROWS][COLUMNS];

    static __device__ __forceinline__ Sums& sums()
    {
        __shared__ Sums all;
        return all;
    }

    static __device__ __forceinline__ int column() { return threadIdx.x / 32 / TOGETHER * OWN; }
    // The place of a thread among those that share a column.
    static __device__ __forceinline__ int lane() { return threadIdx.x % (32 * TOGETHER); }

    // Has the second-level cache fetch what will be read, which is safe while kernels before still write.
    static __device__ __forceinline__ void prefetch(const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides)
    {
        constexpr int LINE = 128 / sizeof(T);
#pragma unroll
        for (int c = 0; c < OWN; ++c) {
            const long long n = strip.n + column() + c;
            if (n >= shape.n) break;
            for (long long k = strip.k + lane() * LINE; k < strip.k_end; k += 32 * TOGETHER * LINE)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(right + n * strides.axis[4] + k));
        }
    }

    static __device__ __forceinline__ void multiply(A (&sum)[ROWS][OWN], const fuse_pack<T, W> (&rows)[ROWS], const fuse_pack<T, W> (&columns)[OWN])
    {
#pragma unroll
        for (int w = 0; w < W; ++w)
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int c = 0; c < OWN; ++c)
                    sum[row][c] = fuse_multiply_add(fuse_to_compute(rows[row][w]), fuse_to_compute(columns[c][w]), sum[row][c]);
    }

    // Leaves what every warp came to in shared memory.
    static __device__ __forceinline__ void run(const Strip& strip, const fuse_shape& shape, const T* left, const fuse_matrix& left_strides, const T* right, const fuse_matrix& right_strides)
    {
        A sum[ROWS][OWN] = {};
        for (long long from = strip.k + lane() * W; from < strip.k_end; from += AHEAD * PASS) {
            fuse_pack<T, W> columns[AHEAD][OWN];
#pragma unroll
            for (int pass = 0; pass < AHEAD; ++pass)
#pragma unroll
                for (int c = 0; c < OWN; ++c) {
                    const long long k = from + pass * PASS, n = strip.n + column() + c;
                    fuse_read_some<true>(columns[pass][c], right + n * right_strides.axis[4] + k, 1, n < shape.n ? strip.k_end - k : 0);
                }
#pragma unroll
            for (int pass = 0; pass < AHEAD; ++pass) {
                const long long k = from + pass * PASS;
                fuse_pack<T, W> rows[ROWS];
#pragma unroll
                for (int row = 0; row < ROWS; ++row) {
                    const long long m = strip.m + row, step = L == 1 ? 1 : left_strides.axis[4];
                    fuse_read_some<L == 1>(rows[row], left + m * left_strides.axis[3] + k * step, step, m < shape.m ? strip.k_end - k : 0);
                }
                multiply(sum, rows, columns[pass]);
            }
        }
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
#pragma unroll
            for (int c = 0; c < OWN; ++c) {
                A x = sum[row][c];
#pragma unroll
                for (int s = 1; s < 32; s *= 2) x = fuse_multiply_add(x, (A)1, fuse_shuffle(x, s));
                if (threadIdx.x % 32 == 0) sums()[threadIdx.x / 32 % TOGETHER][row][column() + c] = x;
            }
        __syncthreads();
    }

    static __device__ __forceinline__ A total(int row, int column)
    {
        A x = sums()[0][row][column];
#pragma unroll
        for (int share = 1; share < TOGETHER; ++share) x = fuse_multiply_add(sums()[share][row][column], (A)1, x);
        return x;
    }
};

// Where it lies in runs across, blocks have strips of it as those of floats.
template <class T, int N, int L, int C> struct fuse_slim<T, N, L, 2, C> : fuse_skinny<T, N, 2> {
    typedef fuse_skinny<T, N, 2> All;
    typedef typename All::Strip Strip;

    static __device__ __forceinline__ void prefetch(const Strip& strip, const fuse_shape& shape, const T* right, const fuse_matrix& strides)
    {
        const long long n = strip.n + threadIdx.x % 2 * (All::COLUMNS / 2);
        if (n >= shape.n) return;
        for (long long k = strip.k + threadIdx.x / 2; k < strip.k_end; k += 128)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(right + k * strides.axis[3] + n));
    }
};

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void fuse_multiply_halves(fuse_bf16, float* upper, float* lower, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// The address of something in shared memory, as instructions take it.
static __device__ __forceinline__ unsigned fuse_shared_at(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

// STAGES pieces of shared memory that go round between threads that fill them and threads that use them.
// See "mbarrier" in the PTX ISA: a barrier's phase is over when so many threads have arrived.
template <int STAGES> struct fuse_ring {
    unsigned long long full[STAGES], empty[STAGES];

    // By one thread, before a barrier of the block.
    __device__ __forceinline__ void open(unsigned fillers, unsigned users)
    {
        for (int stage = 0; stage < STAGES; ++stage) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(fuse_shared_at(full + stage)), "r"(fillers) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(fuse_shared_at(empty + stage)), "r"(users) : "memory");
        }
    }

    static __device__ __forceinline__ void arrive(unsigned long long& barrier)
    {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(fuse_shared_at(&barrier)) : "memory");
    }

    // Arrives when the copies of this thread so far are done.
    static __device__ __forceinline__ void arrive_behind_copies(unsigned long long& barrier)
    {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(fuse_shared_at(&barrier)) : "memory");
    }

    // Until the phase of this parity is over.
    static __device__ __forceinline__ void await(unsigned long long& barrier, unsigned parity)
    {
        asm volatile("{\n.reg .pred over;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra AGAIN_%=;\n}"
                     :: "r"(fuse_shared_at(&barrier)), "r"(parity) : "memory");
    }
};

// Where a thread is on its way round a ring.
template <int STAGES> struct fuse_lap {
    unsigned stage = 0, parity = 0;

    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Products on their way: those between a beginning and an end are a group.
static __device__ __forceinline__ void fuse_wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void fuse_wgmma_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all but the last groups of products, after which `d` may be read.
template <int BUT, int N> static __device__ __forceinline__ void fuse_wgmma_await(float (&d)[N])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(BUT) : "memory");
#pragma unroll
    for (int n = 0; n < N; ++n) asm volatile("" : "+f"(d[n]) :: "memory");
}

// What eight warps have of a tile of SIZE columns after their products, 16 rows each: of every 8 columns a thread has two
// neighbours, in each of two rows. So memory is met in small pieces; turned in shared memory, 32 columns at a time, a thread
// has VEC neighbours of a row, and a warp whole rows.
template <int SIZE> struct fuse_turn {
    static constexpr int PIECES = SIZE / 32, ACCESSES = 16 / VEC;
    // Eight more columns than are used keep rows in different banks.
    struct alignas(16) Shared { float of[8][16][40]; };
    float (&of)[16][40];

    __device__ __forceinline__ fuse_turn(Shared& shared) : of(shared.of[threadIdx.x / 32 - 4]) {}

    // Where an access is in the tile, from its piece on.
    static __device__ __forceinline__ int row(int access)
    {
        return (threadIdx.x / 32 - 4) * 16 + access % ACCESSES * VEC + threadIdx.x % 32 / (32 / VEC);
    }
    static __device__ __forceinline__ int column(int access)
    {
        return access / ACCESSES * 32 + threadIdx.x % (32 / VEC) * VEC;
    }

    // Which registers a piece is in is known where it is compared with each.
    __device__ __forceinline__ void put(const float (&product)[SIZE / 2], int piece)
    {
        const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
        __syncwarp();
#pragma unroll
        for (int n = 0; n < PIECES; ++n) {
            if (n != piece) continue;
#pragma unroll
            for (int j = 0; j < 8; ++j)
                *(float2*)&of[row + j % 2 * 8][column + j / 2 * 8] = make_float2(product[n * 16 + j * 2], product[n * 16 + j * 2 + 1]);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void get(float (&to)[VEC], int access) const
    {
        const float* from = &of[access % ACCESSES * VEC + threadIdx.x % 32 / (32 / VEC)][threadIdx.x % (32 / VEC) * VEC];
        fuse_pack<float, VEC> pack;
        pack.load(from);
#pragma unroll
        for (int v = 0; v < VEC; ++v) to[v] = pack[v];
    }

    // All accesses to a piece of each of N products, which have as many columns.
    template <int N> __device__ __forceinline__ void all(float (&to)[N][ACCESSES][VEC], const float (&product)[SIZE / 2], int piece)
    {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            put(product, piece + n * (PIECES / N));
#pragma unroll
            for (int access = 0; access < ACCESSES; ++access) get(to[n][access], access);
        }
    }
};

// d = a b, or d += a b, of 64 by 16 halves and 16 by N in shared memory. An operand is turned (1) if its rows or columns lie there,
// and not runs along k. See "wgmma.mma_async" in the PTX ISA.
template <class T, int N, int LEFT_TURNED, int RIGHT_TURNED> struct fuse_wgmma_halves;
#define FUSE_8(d, n) "+f"(d[n]), "+f"(d[n + 1]), "+f"(d[n + 2]), "+f"(d[n + 3]), "+f"(d[n + 4]), "+f"(d[n + 5]), "+f"(d[n + 6]), "+f"(d[n + 7])
#define FUSE_32(d, n) FUSE_8(d, n), FUSE_8(d, n + 8), FUSE_8(d, n + 16), FUSE_8(d, n + 24)

template <int L, int R> struct fuse_wgmma_halves<fuse_bf16, 128, L, R> {
    static __device__ __forceinline__ void run(float (&d)[64], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                         "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                     "%64, %65, add, 1, 1, %67, %68;\n}"
                     : FUSE_32(d, 0), FUSE_32(d, 32)
                     : "l"(a), "l"(b), "r"(add), "n"(L), "n"(R));
    }
};

template <int L, int R> struct fuse_wgmma_halves<fuse_bf16, 192, L, R> {
    static __device__ __forceinline__ void run(float (&d)[96], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %98, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                         "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                         "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                         "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
                     "%96, %97, add, 1, 1, %99, %100;\n}"
                     : FUSE_32(d, 0), FUSE_32(d, 32), FUSE_32(d, 64)
                     : "l"(a), "l"(b), "r"(add), "n"(L), "n"(R));
    }
};

template <int L, int R> struct fuse_wgmma_halves<fuse_bf16, 256, L, R> {
    static __device__ __forceinline__ void run(float (&d)[128], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                         "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                         "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                         "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                         "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                         "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                     "%128, %129, add, 1, 1, %131, %132;\n}"
                     : FUSE_32(d, 0), FUSE_32(d, 32), FUSE_32(d, 64), FUSE_32(d, 96)
                     : "l"(a), "l"(b), "r"(add), "n"(L), "n"(R));
    }
};

// Products of halves on the tensor cores of Hopper. A block computes 128 rows and SIZE columns at a time. Four warps copy 64 inner
// positions of both operands a stage to shared memory, eight multiply 64 rows each four from there. L and R say how the operands
// lie, as in `fuse_packs`: 1 along k, 2 along their rows or columns, in both cases in aligned runs of 16 bytes. Of N products with
// one left operand it computes as many columns each, a multiple of 64.
template <class T, int SIZE, int L, int R, int N = 1> struct fuse_halves {
    static constexpr int EACH = SIZE / N;
    typedef fuse_part<128, EACH> Part;
    static constexpr int RUN = 16 / sizeof(T), DEPTH = 8 * RUN, STAGES = SIZE > 192 ? 4 : 5;

    // Lines of 128 bytes: 64 inner positions of a row, or 64 rows at an inner position. Of eight lines, the 16 bytes at the
    // same place are swizzled into different banks.
    struct Stage { unsigned char left[128 * 128], right[SIZE * 128]; };
    struct Shared {
        Stage stage[STAGES];
        fuse_ring<STAGES> ring;
        typename fuse_turn<SIZE>::Shared turn;
    };

    Shared& shared;
    fuse_lap<STAGES> lap;

    __device__ __forceinline__ fuse_halves(void* at) : shared(*(Shared*)(((unsigned long long)at + 1023) / 1024 * 1024))
    {
        if (threadIdx.x == 0) shared.ring.open(128, 2);
        __syncthreads();
    }

    // Whether a thread is one of those that copy.
    static __device__ __forceinline__ bool feeds() { return threadIdx.x < 128; }

    // First of all, those leave the others most of the registers: together they may have as many as 384 threads start with.
    static __device__ __forceinline__ void few_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 72;"); }
    static __device__ __forceinline__ void many_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 216;"); }

    static __device__ __forceinline__ void copy(unsigned to, const T* from, int bytes)
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    }

    // Copies X rows (or columns) of an operand from inner position k on; what is outside is 0.
    template <int LIE, int X> static __device__ __forceinline__ void copy(unsigned char* lines, const fuse_side<T>& side, int k)
    {
        const int line = threadIdx.x / 8, chunk = threadIdx.x % 8;
        unsigned to = fuse_shared_at(lines) + line * 128 + (chunk ^ line % 8) * 16;
#pragma unroll
        for (int block = 0; block < X; block += 64) {
            const T* from = side.from + chunk * RUN;
            from += LIE == 1 ? (block + line) * side.x_stride + k : (k + line) * side.k_stride + block;
            const int room = chunk * RUN + (LIE == 1 ? k - (int)side.k_end : block - side.x_end);
            const int bytes = min(max(-room, 0), RUN) * (int)sizeof(T), lines = LIE == 1 ? side.x_end - block - line : (int)side.k_end - k - line;
#pragma unroll
            for (int n = 0; n < 64; n += 16, to += 2048, from += 16 * (LIE == 1 ? side.x_stride : side.k_stride))
                copy(to, from, lines > n ? bytes : 0);
        }
    }

    __device__ __forceinline__ void feed(const fuse_side<T>& left, const fuse_sides<T, N>& right)
    {
        for (int k = 0; k < (int)left.k_end; k += DEPTH) {
            shared.ring.await(shared.ring.empty[lap.stage], lap.parity ^ 1);
            Stage& stage = shared.stage[lap.stage];
            copy<L, 128>(stage.left, left, k);
#pragma unroll
            for (int n = 0; n < N; ++n) copy<R, EACH>(stage.right + n * EACH * 128, right[n], k);
            shared.ring.arrive_behind_copies(shared.ring.full[lap.stage]);
            lap.next();
        }
    }

    // The descriptor of an operand from 16 times `step` inner positions on: 1024 bytes from eight lines to the next, and for one
    // that is turned 8192 from 64 rows to the next.
    template <int LIE> static __device__ __forceinline__ unsigned long long swizzled(const unsigned char* lines, int step)
    {
        const unsigned from = fuse_shared_at(lines) + step * (LIE == 1 ? 32 : 2048);
        return (unsigned long long)(from >> 4) | (unsigned long long)(LIE == 1 ? 1 : 8192 >> 4) << 16
            | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
    }

    // A tile of the product. While one stage is multiplied the one before is given back.
    __device__ __forceinline__ void multiply(float (&product)[SIZE / 2], const fuse_side<T>& left)
    {
        unsigned before = 0;
        for (int k = 0; k < (int)left.k_end; k += DEPTH) {
            shared.ring.await(shared.ring.full[lap.stage], lap.parity);
            // What was copied is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            const Stage& stage = shared.stage[lap.stage];
            const unsigned char* rows = stage.left + (threadIdx.x / 128 - 1) * 8192;
            fuse_wgmma_begin();
#pragma unroll
            for (int step = 0; step < DEPTH / 16; ++step)
                fuse_wgmma_halves<T, SIZE, L == 2, R == 2>::run(product, swizzled<L>(rows, step), swizzled<R>(stage.right, step), k + step > 0);
            fuse_wgmma_end();
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (k > 0) give_back(before);
            before = lap.stage;
            lap.next();
        }
        fuse_wgmma_await<0>(product);
        if (left.k_end > 0) give_back(before);
    }

    __device__ __forceinline__ void give_back(unsigned stage)
    {
        if (threadIdx.x % 128 == 0) shared.ring.arrive(shared.ring.empty[stage]);
    }
};

#if __CUDA_ARCH__ >= 800
// What tensor cores multiply, of elements that are halves.
template <class T, int N> static __device__ __forceinline__ const fuse_pack<T, N>& fuse_as_halves(const fuse_pack<T, N>& pack)
{
    return pack;
}

// A tile of a product of halves on tensor cores, with sums in float. Two warps lie side by side, SIZE / 32 below each other;
// a warp has 32 rows and SIZE / 2 columns and multiplies 16 by 16 with 16 by 8 elements at a time, which leaves every
// thread with two neighbouring columns of a row and of the eighth row after it.
template <class T, int SIZE, int L, int R, class H = T> struct fuse_tensor_product {
    static constexpr int ROWS = 4, COLUMNS = SIZE / 8, DEPTH = 32, W = 8;
    // A tile keeps the order of its operand, with 16 bytes between its lines that keep them in different banks.
    template <int LIE> struct Tile { H of[LIE == 2 ? DEPTH : SIZE][(LIE == 2 ? SIZE : DEPTH) + 8]; };
    typedef Tile<L> LeftTile;
    typedef Tile<R> RightTile;
    typedef fuse_packs<T, L, SIZE, DEPTH, W> LeftPacks;
    typedef fuse_packs<T, R, SIZE, DEPTH, W> RightPacks;

    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 64 * 32 + i * 8 + threadIdx.x % 32 / 4;
    }

    static __device__ __forceinline__ int column(int j)
    {
        return threadIdx.x / 32 % 2 * (SIZE / 2) + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
    }

    template <int LIE> static __device__ __forceinline__ void put(Tile<LIE>& tile, const fuse_packs<T, LIE, SIZE, DEPTH, W>& packs)
    {
#pragma unroll
        for (int pack = 0; pack < packs.COUNT; ++pack) {
            const int x = packs.x() + pack * packs.X_STEP, k = packs.k() + pack * packs.K_STEP;
            fuse_as_halves(packs.of[pack]).store(LIE == 2 ? &tile.of[k][x] : &tile.of[x][k]);
        }
    }

    static __device__ __forceinline__ void multiply(float (&product)[ROWS][COLUMNS], const Tile<L>& left_tile, const Tile<R>& right_tile)
    {
        const int m = threadIdx.x / 64 * 32, n = threadIdx.x / 32 % 2 * (SIZE / 2);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned left[2][4], right[SIZE / 32][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) square(left[i], left_tile, m + 16 * i, k);
#pragma unroll
            for (int j = 0; j < SIZE / 32; ++j) square(right[j], right_tile, n + 16 * j, k);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < SIZE / 16; ++j) {
                    float* upper = &product[2 * i][2 * j];
                    float* lower = &product[2 * i + 1][2 * j];
                    fuse_multiply_halves(H(), upper, lower, left[i], right[j / 2][j % 2], right[j / 2][j % 2 + 2]);
                }
        }
    }

    // 16 by 16 elements from (x, k) on, two of a thread in a register: x 0-7 and x 8-15 of k 0-7, then both of k 8-15.
    template <int LIE> static __device__ __forceinline__ void square(unsigned (&to)[4], const Tile<LIE>& tile, int x, int k)
    {
        const int lane = threadIdx.x % 32;
        if (LIE == 2) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(&tile.of[k + lane / 16 * 8 + lane % 8][x + lane / 8 % 2 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
        } else {
            const unsigned at = (unsigned)__cvta_generic_to_shared(&tile.of[x + lane % 16][k + lane / 16 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
        }
    }
};
#endif

#if __CUDA_ARCH__ >= 800
template <int SIZE, int L, int R>
struct fuse_product<fuse_bf16, SIZE, L, R> : fuse_tensor_product<fuse_bf16, SIZE, L, R> {};
#endif

__device__ __forceinline__ float fuse_silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ double fuse_silu(double x) { return x / (1.0 + exp(-x)); }

#if defined(KERNEL_k0_matmul_silu)
// k0_matmul_silu: map[x.0, gate.1] silu4 = silu(product)
//   src/lib.rs:2  matmul(..)
//   src/lib.rs:3  silu(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k0_matmul_silu(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    float* parts,
    unsigned* counters) {
    typedef fuse_slim<fuse_bf16, SLIM, LEFT, RIGHT, STRIP> strips;
    const strips::Strip strip(shape, 1);
    const auto columns = right + strip.start(right_strides);
    strips::prefetch(strip, shape, columns, right_strides);
    fuse_behind();
    __shared__ float product[1][strips::ROWS][strips::COLUMNS];
    const auto rows = left + strip.start(left_strides);
    strips::run(strip, shape, rows, left_strides, columns, right_strides);
    if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;
    for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256) {
        const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;
        const long long m = strip.m + i, n = strip.n + j;
        if (m >= shape.m || n >= shape.n) continue;
        const fuse_at<RANK> at = {strip.batch.axis[0], strip.batch.axis[1], strip.batch.axis[2], (IDX)m, (IDX)n};
        float silu4_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = fuse_rounded<fuse_bf16>(product[0][i][j + v]);
            const float silu = fuse_silu(product2);
            silu4_out[v] = silu;
        }
        fuse_write<STEP_0>(silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_out, silu4_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k0_matmul_silu(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_halves<fuse_bf16, HALVES, LEFT, RIGHT> tile;
    extern __shared__ uint4 fuse_shared[];
    tile work(fuse_shared);
    if (tile::feeds()) {
        tile::few_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            work.feed(part.left(left, left_strides, shape), part.rights(right_strides, shape, right));
        }
    } else {
        tile::many_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            float product[HALVES / 2] = {};
            work.multiply(product, part.left(left, left_strides, shape));
            fuse_turn<HALVES> turn(work.shared.turn);
#pragma unroll
            for (int piece = 0; piece < turn.PIECES; piece += 2) {
#pragma unroll
                for (int access = 0; access < 2 * turn.ACCESSES; ++access) {
                    if (access % turn.ACCESSES == 0) turn.put(product, piece + access / turn.ACCESSES);
                    const long long m = part.m + turn.row(access), n = part.n + piece * 32 + turn.column(access);
                    if (m >= shape.m || n >= shape.n) continue;
                    const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
                    float value[VEC];
                    turn.get(value, access);
                    float silu4_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = fuse_rounded<fuse_bf16>(value[v]);
                        const float silu = fuse_silu(product2);
                        silu4_out[v] = silu;
                    }
                    fuse_write<STEP_0>(silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_out, silu4_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k0_matmul_silu(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_product<fuse_bf16, TILE, LEFT, RIGHT> tile;
    const fuse_part<TILE, TILE> part(blockIdx.x, shape);
    float product[tile::ROWS][tile::COLUMNS] = {};
    fuse_multiply<tile>(product, part.left(left, left_strides, shape), part.right(right, right_strides, shape));
#pragma unroll
    for (int i = 0; i < tile::ROWS; ++i) {
#pragma unroll
        for (int access = 0; access < tile::COLUMNS / VEC; ++access) {
            const int j = access * VEC;
            const long long m = part.m + tile::row(i), n = part.n + tile::column(j);
            if (m >= shape.m || n >= shape.n) continue;
            const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
            float silu4_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = fuse_rounded<fuse_bf16>(product[i][j + v]);
                const float silu = fuse_silu(product2);
                silu4_out[v] = silu;
            }
            fuse_write<STEP_0>(silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_out, silu4_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k0_after_matmul_silu)
// k0_after_matmul_silu: map[x.0, gate.1] silu4 = silu(product)
//   src/lib.rs:2  matmul(..)
//   src/lib.rs:3  silu(..)
extern "C" __global__ void __launch_bounds__(256) k0_after_matmul_silu(
    const fuse_bf16* product2_ptr,
    const fuse_strides<RANK> product2_strides,
    fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<fuse_bf16, VEC> product2_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(product2_in[u], product2_ptr + fuse_offset<STEP_0>(at[u], product2_strides), product2_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        float silu4_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = fuse_to_compute(product2_in[u][v]);
            const float silu = fuse_silu(product2);
            silu4_out[v] = silu;
        }
        fuse_write<STEP_1>(silu4_ptr + fuse_offset<STEP_1>(at[u], silu4_strides), silu4_out, silu4_strides.axis[RANK - 1], live);
    }
}
#endif

#if defined(KERNEL_k1_matmul_mul)
// k1_matmul_mul: map[x.0, gate.1] mul6 = mul(silu4, product)
//   src/lib.rs:4  matmul(..)
//   src/lib.rs:5  mul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k1_matmul_mul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    const fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    float* parts,
    unsigned* counters) {
    typedef fuse_slim<fuse_bf16, SLIM, LEFT, RIGHT, STRIP> strips;
    const strips::Strip strip(shape, 1);
    const auto columns = right + strip.start(right_strides);
    strips::prefetch(strip, shape, columns, right_strides);
    fuse_behind();
    __shared__ float product[1][strips::ROWS][strips::COLUMNS];
    const auto rows = left + strip.start(left_strides);
    strips::run(strip, shape, rows, left_strides, columns, right_strides);
    if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;
    for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256) {
        const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;
        const long long m = strip.m + i, n = strip.n + j;
        if (m >= shape.m || n >= shape.n) continue;
        const fuse_at<RANK> at = {strip.batch.axis[0], strip.batch.axis[1], strip.batch.axis[2], (IDX)m, (IDX)n};
        fuse_pack<fuse_bf16, VEC> silu4_in[1];
        fuse_read<STEP_0>(silu4_in[0], silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_strides.axis[RANK - 1]);
        float mul6_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = fuse_rounded<fuse_bf16>(product[0][i][j + v]);
            const float silu4 = fuse_to_compute(silu4_in[0][v]);
            const float mul = silu4 * product2;
            mul6_out[v] = mul;
        }
        fuse_write<STEP_1>(mul6_ptr + fuse_offset<STEP_1>(at, mul6_strides), mul6_out, mul6_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k1_matmul_mul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    const fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_halves<fuse_bf16, HALVES, LEFT, RIGHT> tile;
    extern __shared__ uint4 fuse_shared[];
    tile work(fuse_shared);
    if (tile::feeds()) {
        tile::few_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            work.feed(part.left(left, left_strides, shape), part.rights(right_strides, shape, right));
        }
    } else {
        tile::many_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            float product[HALVES / 2] = {};
            work.multiply(product, part.left(left, left_strides, shape));
            fuse_turn<HALVES> turn(work.shared.turn);
#pragma unroll
            for (int piece = 0; piece < turn.PIECES; piece += 2) {
                fuse_pack<fuse_bf16, VEC> silu4_in[2 * turn.ACCESSES];
#pragma unroll
                for (int access = 0; access < 2 * turn.ACCESSES; ++access) {
                    const long long m = part.m + turn.row(access), n = part.n + piece * 32 + turn.column(access);
                    if (m >= shape.m || n >= shape.n) continue;
                    const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
                    fuse_read<STEP_0>(silu4_in[access], silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_strides.axis[RANK - 1]);
                }
#pragma unroll
                for (int access = 0; access < 2 * turn.ACCESSES; ++access) {
                    if (access % turn.ACCESSES == 0) turn.put(product, piece + access / turn.ACCESSES);
                    const long long m = part.m + turn.row(access), n = part.n + piece * 32 + turn.column(access);
                    if (m >= shape.m || n >= shape.n) continue;
                    const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
                    float value[VEC];
                    turn.get(value, access);
                    float mul6_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = fuse_rounded<fuse_bf16>(value[v]);
                        const float silu4 = fuse_to_compute(silu4_in[access][v]);
                        const float mul = silu4 * product2;
                        mul6_out[v] = mul;
                    }
                    fuse_write<STEP_1>(mul6_ptr + fuse_offset<STEP_1>(at, mul6_strides), mul6_out, mul6_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k1_matmul_mul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    const fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_product<fuse_bf16, TILE, LEFT, RIGHT> tile;
    const fuse_part<TILE, TILE> part(blockIdx.x, shape);
    float product[tile::ROWS][tile::COLUMNS] = {};
    fuse_multiply<tile>(product, part.left(left, left_strides, shape), part.right(right, right_strides, shape));
#pragma unroll
    for (int i = 0; i < tile::ROWS; ++i) {
#pragma unroll
        for (int access = 0; access < tile::COLUMNS / VEC; ++access) {
            const int j = access * VEC;
            const long long m = part.m + tile::row(i), n = part.n + tile::column(j);
            if (m >= shape.m || n >= shape.n) continue;
            const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
            fuse_pack<fuse_bf16, VEC> silu4_in[1];
            fuse_read<STEP_0>(silu4_in[0], silu4_ptr + fuse_offset<STEP_0>(at, silu4_strides), silu4_strides.axis[RANK - 1]);
            float mul6_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = fuse_rounded<fuse_bf16>(product[i][j + v]);
                const float silu4 = fuse_to_compute(silu4_in[0][v]);
                const float mul = silu4 * product2;
                mul6_out[v] = mul;
            }
            fuse_write<STEP_1>(mul6_ptr + fuse_offset<STEP_1>(at, mul6_strides), mul6_out, mul6_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k1_after_matmul_mul)
// k1_after_matmul_mul: map[x.0, gate.1] mul6 = mul(silu4, product)
//   src/lib.rs:4  matmul(..)
//   src/lib.rs:5  mul(..)
extern "C" __global__ void __launch_bounds__(256) k1_after_matmul_mul(
    const fuse_bf16* silu4_ptr,
    const fuse_strides<RANK> silu4_strides,
    const fuse_bf16* product2_ptr,
    const fuse_strides<RANK> product2_strides,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<fuse_bf16, VEC> product2_in[2];
    fuse_pack<fuse_bf16, VEC> silu4_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_1>(product2_in[u], product2_ptr + fuse_offset<STEP_1>(at[u], product2_strides), product2_strides.axis[RANK - 1], live);
        fuse_read<STEP_0>(silu4_in[u], silu4_ptr + fuse_offset<STEP_0>(at[u], silu4_strides), silu4_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        float mul6_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = fuse_to_compute(product2_in[u][v]);
            const float silu4 = fuse_to_compute(silu4_in[u][v]);
            const float mul = silu4 * product2;
            mul6_out[v] = mul;
        }
        fuse_write<STEP_2>(mul6_ptr + fuse_offset<STEP_2>(at[u], mul6_strides), mul6_out, mul6_strides.axis[RANK - 1], live);
    }
}
#endif

#if defined(KERNEL_k0_products_silu_mul)
// k0_products_silu_mul: map[x.0, gate.1] mul6 = mul(silu(product), product)
//   src/lib.rs:2  matmul(..)
//   src/lib.rs:3  silu(..)
//   src/lib.rs:4  matmul(..)
//   src/lib.rs:5  mul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k0_products_silu_mul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right_0,
    const fuse_bf16* right_1,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    float* parts,
    unsigned* counters) {
    typedef fuse_slim<fuse_bf16, SLIM, LEFT, RIGHT, STRIP> strips;
    const strips::Strip strip(shape, 2);
    const fuse_bf16* const rights[] = {right_0, right_1};
    const auto columns = rights[strip.product] + strip.start(right_strides);
    strips::prefetch(strip, shape, columns, right_strides);
    fuse_behind();
    __shared__ float product[2][strips::ROWS][strips::COLUMNS];
    const auto rows = left + strip.start(left_strides);
    strips::run(strip, shape, rows, left_strides, columns, right_strides);
    if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;
    for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256) {
        const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;
        const long long m = strip.m + i, n = strip.n + j;
        if (m >= shape.m || n >= shape.n) continue;
        const fuse_at<RANK> at = {strip.batch.axis[0], strip.batch.axis[1], strip.batch.axis[2], (IDX)m, (IDX)n};
        float mul6_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = fuse_rounded<fuse_bf16>(product[0][i][j + v]);
            const float silu = fuse_rounded<fuse_bf16>(fuse_silu(product2));
            const float product3 = fuse_rounded<fuse_bf16>(product[1][i][j + v]);
            const float mul = silu * product3;
            mul6_out[v] = mul;
        }
        fuse_write<STEP_0>(mul6_ptr + fuse_offset<STEP_0>(at, mul6_strides), mul6_out, mul6_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k0_products_silu_mul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right_0,
    const fuse_bf16* right_1,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* mul6_ptr,
    const fuse_strides<RANK> mul6_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_halves<fuse_bf16, HALVES, LEFT, RIGHT, 2> tile;
    extern __shared__ uint4 fuse_shared[];
    tile work(fuse_shared);
    if (tile::feeds()) {
        tile::few_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            work.feed(part.left(left, left_strides, shape), part.rights(right_strides, shape, right_0, right_1));
        }
    } else {
        tile::many_registers();
        for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x) {
            const tile::Part part(n, shape);
            float product[HALVES / 2] = {};
            work.multiply(product, part.left(left, left_strides, shape));
            fuse_turn<HALVES> turn(work.shared.turn);
#pragma unroll
            for (int piece = 0; piece < turn.PIECES / 2; piece += 2) {
                float value[2][turn.ACCESSES][VEC];
#pragma unroll
                for (int access = 0; access < 2 * turn.ACCESSES; ++access) {
                    if (access % turn.ACCESSES == 0) turn.all(value, product, piece + access / turn.ACCESSES);
                    const long long m = part.m + turn.row(access), n = part.n + piece * 32 + turn.column(access);
                    if (m >= shape.m || n >= shape.n) continue;
                    const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
                    float mul6_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = fuse_rounded<fuse_bf16>(value[0][access % turn.ACCESSES][v]);
                        const float silu = fuse_rounded<fuse_bf16>(fuse_silu(product2));
                        const float product3 = fuse_rounded<fuse_bf16>(value[1][access % turn.ACCESSES][v]);
                        const float mul = silu * product3;
                        mul6_out[v] = mul;
                    }
                    fuse_write<STEP_0>(mul6_ptr + fuse_offset<STEP_0>(at, mul6_strides), mul6_out, mul6_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#endif
#endif

