// linear_relu

// A kernel may be started while the one before it still runs: it waits here until all of that is done and seen, so
// nothing may come before. One with so few blocks that all of them run at a time lets the next be started at once.
static __device__ __forceinline__ void fuse_behind()
{
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 264) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
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

// d = a b, or d += a b, of 64 by 16 bfloat16 in the registers of four warps and 16 by 64 in shared memory; see
// "wgmma.mma_async" in the PTX ISA for which thread has which elements. The products are on their way until they are awaited.
static __device__ __forceinline__ void fuse_wgmma(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int add)
{
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}

// The descriptor of a matrix in shared memory that is not swizzled: pieces of 8 rows by 16 bytes, that lie so many bytes apart
// along k and along the rows.
static __device__ __forceinline__ unsigned long long fuse_pieces(const void* at, int along_k, int along_rows)
{
    return (unsigned long long)(fuse_shared_at(at) >> 4) | (unsigned long long)(along_k >> 4) << 16
        | (unsigned long long)(along_rows >> 4) << 32;
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

// What a block computes of a product, STEP inner positions at a time. Each takes whole tiles in turn as long as there is one for all of
// them; what remains they share: of all steps of the last tiles one block has as many as any other, so that no multiprocessor
// waits for the others (Osama et al., "Stream-K", 2023). Without memory for parts of tiles all are taken whole.
template <class PART, int STEP, bool SHARED> struct fuse_shares {
    float* parts;
    // The next whole tile and how many those are, steps of the others from the next one to the end of this block's, all of them, and
    // those of a tile.
    unsigned tile, whole;
    int at, end, all, steps;

    __device__ __forceinline__ fuse_shares(const fuse_shape& shape, float* parts)
        : parts(parts), tile(blockIdx.x), steps(max((int)((shape.k + STEP - 1) / STEP), 1))
    {
        const unsigned count = PART::count(shape);
        whole = parts ? count - count % gridDim.x : count;
        all = (int)(count - whole) * steps;
        at = (int)((long long)all * blockIdx.x / gridDim.x);
        end = (int)((long long)all * (blockIdx.x + 1) / gridDim.x);
        settle_on();
    }

    // Behind the whole tiles the next one is that of the next step.
    __device__ __forceinline__ void settle_on() { if (tile >= whole) tile = whole + at / steps; }
    __device__ __forceinline__ bool is_whole() const { return tile < whole || last() - first() == steps; }
    __device__ __forceinline__ bool more() const { return tile < whole || at < end; }
    __device__ __forceinline__ void next()
    {
        if (tile < whole) tile += gridDim.x;
        else at += last() - first();
        settle_on();
    }

    // The share of this tile, in steps.
    __device__ __forceinline__ int first() const { return tile < whole ? 0 : at % steps; }
    __device__ __forceinline__ int last() const { return tile < whole ? steps : min(first() + end - at, steps); }

    template <class T> __device__ __forceinline__ fuse_side<T> of(const fuse_side<T>& side) const
    {
        const long long from = (long long)first() * STEP, to = min((long long)last() * STEP, side.k_end);
        return {side.from + from * side.k_stride, side.x_stride, side.k_stride, side.x_end, to - from};
    }

    template <class T, int N> __device__ __forceinline__ fuse_sides<T, N> of(fuse_sides<T, N> sides) const
    {
        const fuse_side<T> side = of(sides[0]);
        const long long to = side.from - sides.from[0];
#pragma unroll
        for (int n = 0; n < N; ++n) sides.from[n] += to;
        sides.k_end = side.k_end;
        return sides;
    }

    // The block that has a step of the shared tiles.
    __device__ __forceinline__ int owner(int step) const { return (int)((((long long)step + 1) * gridDim.x - 1) / all); }

    // Puts down what this warp, one of eight, has of a tile; whether it is the last of those that have some of it, and now has the
    // sum, which is always made in the same order. Then what it has counted is 0 again.
    template <int N> __device__ __forceinline__ bool settle(float (&product)[N], unsigned* counters) const
    {
        if (is_whole()) return true;
        const int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, number = (int)(tile - whole);
        const int begin = number * steps, first = owner(begin), owners = owner(begin + steps - 1) - first + 1;
        // As many as a tile may have.
        const int most = (int)((long long)gridDim.x * steps / all) + 2;
        const auto part = [&](int of) { return (float4*)parts + (((long long)number * most + of) * 8 + warp) * (N / 4 * 32) + lane; };
        float4* const own = part(blockIdx.x - first);
#pragma unroll
        for (int j = 0; j < N; j += 4) __stcg(own + j * 8, make_float4(product[j], product[j + 1], product[j + 2], product[j + 3]));
        __threadfence();
        __syncwarp();
        unsigned before = 0;
        if (lane == 0) before = atomicAdd(counters + number * 8 + warp, 1u);
        if (__shfl_sync(~0u, before, 0) != owners - 1) return false;
        if (lane == 0) counters[number * 8 + warp] = 0;
        __threadfence();
#pragma unroll
        for (int j = 0; j < N; ++j) product[j] = 0.0f;
#pragma unroll 1
        for (int k = 0; k < owners; ++k) {
            const float4* const other = part(k);
#pragma unroll
            for (int j = 0; j < N; j += 4) {
                const float4 more = __ldcg(other + j * 8);
                product[j] += more.x, product[j + 1] += more.y, product[j + 2] += more.z, product[j + 3] += more.w;
            }
        }
        return true;
    }
};

// Where sharing does not pay there is no text for it: it takes ptxas as long as all else, and products a twentieth longer.
template <class PART, int STEP> struct fuse_shares<PART, STEP, false> {
    unsigned tile, count;

    __device__ __forceinline__ fuse_shares(const fuse_shape& shape, float*) : tile(blockIdx.x), count(PART::count(shape)) {}
    __device__ __forceinline__ bool more() const { return tile < count; }
    __device__ __forceinline__ void next() { tile += gridDim.x; }
    template <class T> __device__ __forceinline__ const fuse_side<T>& of(const fuse_side<T>& side) const { return side; }
    template <class T, int N> __device__ __forceinline__ const fuse_sides<T, N>& of(const fuse_sides<T, N>& sides) const { return sides; }
    template <int N> __device__ __forceinline__ bool settle(float (&)[N], unsigned*) const { return true; }
};

// Two floats as pairs of bfloat16, the low one first.
static __device__ __forceinline__ unsigned fuse_bf16_pair(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// The parts of pair number `at`.
template <int N> static __device__ __forceinline__ void fuse_third_pair(unsigned (&parts)[3][N], int at, float low, float high)
{
#pragma unroll
    for (int part = 0; part < 3; ++part) {
        const unsigned pair = parts[part][at] = fuse_bf16_pair(low, high);
        low -= __uint_as_float(pair << 16);
        high -= __uint_as_float(pair & 0xffff0000u);
    }
}

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

#if defined(KERNEL_k0_matmul)
// k0_matmul: map[x.0, w.1] product3 = product
//   src/lib.rs:2  matmul(..)
#if defined(FEW)
extern "C" __global__ void __launch_bounds__(256, 2) k0_matmul(
    const float* left,
    const fuse_matrix left_strides,
    const float* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    float* product3_ptr,
    const fuse_strides<RANK> product3_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_skinny<float, FEW, RIGHT> strips;
    const strips::Strip strip(shape, 1);
    const auto columns = right + strip.start(right_strides);
    __shared__ float product[1][strips::ROWS][strips::COLUMNS];
    const auto rows = left + strip.start(left_strides);
    strips::run(strip, shape, rows, left_strides, columns, right_strides);
    if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;
    for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256) {
        const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;
        const long long m = strip.m + i, n = strip.n + j;
        if (m >= shape.m || n >= shape.n) continue;
        const fuse_at<RANK> at = {strip.batch.axis[0], strip.batch.axis[1], strip.batch.axis[2], (IDX)m, (IDX)n};
        float product3_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            product3_out[v] = product2;
        }
        fuse_write<STEP_0>(product3_ptr + fuse_offset<STEP_0>(at, product3_strides), product3_out, product3_strides.axis[RANK - 1]);
    }
}
#elif defined(THIRDS)
extern "C" __global__ void __launch_bounds__(384, 1) k0_matmul(
    const float* left,
    const fuse_matrix left_strides,
    const float* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    float* product3_ptr,
    const fuse_strides<RANK> product3_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_thirds<THIRDS, LEFT, RIGHT> tile;
    extern __shared__ uint4 fuse_shared[];
    tile work(fuse_shared);
    if (tile::feeds()) {
        tile::few_registers();
        for (fuse_shares<tile::Part, 2 * tile::DEPTH, SHARES> share(shape, parts); share.more(); share.next()) {
            const tile::Part part(share.tile, shape);
            work.feed(share.of(part.rights(right_strides, shape, right)));
        }
    } else {
        tile::many_registers();
        for (fuse_shares<tile::Part, 2 * tile::DEPTH, SHARES> share(shape, parts); share.more(); share.next()) {
            const tile::Part part(share.tile, shape);
            float product[THIRDS / 2] = {};
            work.multiply(product, share.of(part.left(left, left_strides, shape)), share.of(part.rights(right_strides, shape, right)));
            if (!share.settle(product, counters)) continue;
            fuse_turn<THIRDS> turn(work.shared.turn);
#pragma unroll 1
            for (int piece = 0; piece < turn.PIECES; ++piece) {
                turn.put(product, piece);
#pragma unroll
                for (int access = 0; access < turn.ACCESSES; ++access) {
                    const long long m = part.m + turn.row(access), n = part.n + piece * 32 + turn.column(access);
                    if (m >= shape.m || n >= shape.n) continue;
                    const fuse_at<RANK> at = {part.batch.axis[0], part.batch.axis[1], part.batch.axis[2], (IDX)m, (IDX)n};
                    float value[VEC];
                    turn.get(value, access);
                    float product3_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        product3_out[v] = product2;
                    }
                    fuse_write<STEP_0>(product3_ptr + fuse_offset<STEP_0>(at, product3_strides), product3_out, product3_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k0_matmul(
    const float* left,
    const fuse_matrix left_strides,
    const float* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    float* product3_ptr,
    const fuse_strides<RANK> product3_strides,
    float* parts,
    unsigned* counters) {
    fuse_behind();
    typedef fuse_product<float, TILE, LEFT, RIGHT> tile;
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
            float product3_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                product3_out[v] = product2;
            }
            fuse_write<STEP_0>(product3_ptr + fuse_offset<STEP_0>(at, product3_strides), product3_out, product3_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k1_add_relu)
// k1_add_relu: map[x.0, broadcast(w.1, b.0)] relu5 = relu(add(product3, b))
//   src/lib.rs:3  add(..)
//   src/lib.rs:4  relu(..)
extern "C" __global__ void __launch_bounds__(256) k1_add_relu(
    const float* product3_ptr,
    const fuse_strides<RANK> product3_strides,
    const float* b_ptr,
    const fuse_strides<RANK> b_strides,
    float* relu5_ptr,
    const fuse_strides<RANK> relu5_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<float, VEC> product3_in[2];
    fuse_pack<float, VEC> b_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(product3_in[u], product3_ptr + fuse_offset<STEP_0>(at[u], product3_strides), product3_strides.axis[RANK - 1], live);
        fuse_read<STEP_1>(b_in[u], b_ptr + fuse_offset<STEP_1>(at[u], b_strides), b_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        float relu5_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product3 = fuse_to_compute(product3_in[u][v]);
            const float b = fuse_to_compute(b_in[u][v]);
            const float add = product3 + b;
            const float relu = (add < 0 ? 0 : add);
            relu5_out[v] = relu;
        }
        fuse_write<STEP_2>(relu5_ptr + fuse_offset<STEP_2>(at[u], relu5_strides), relu5_out, relu5_strides.axis[RANK - 1], live);
    }
}
#endif

