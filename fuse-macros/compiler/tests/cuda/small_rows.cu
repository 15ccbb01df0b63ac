// small_rows

// A kernel may be started while the one before it still runs: it waits here until all of that is done and seen, so
// nothing may come before. One with so few blocks that all of them run at a time lets the next be started at once.
static __device__ __forceinline__ void fuse_behind()
{
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 264) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// IEEE half precision, computed in float.
struct fuse_f16 { unsigned short bits; };

static __device__ __forceinline__ float fuse_to_compute(fuse_f16 x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

static __device__ __forceinline__ fuse_f16 fuse_to_f16(float x)
{
    fuse_f16 narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
    return narrow;
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

template <> struct fuse_element<fuse_f16> {
    static __device__ __forceinline__ fuse_f16 of(float x) { return fuse_to_f16(x); }
    static __device__ __forceinline__ fuse_f16 of_bits(unsigned bits) { return {(unsigned short)bits}; }
    static __device__ __forceinline__ unsigned bits(fuse_f16 x) { return x.bits; }
    static __device__ __forceinline__ float rounded(float x) { return fuse_to_compute(fuse_to_f16(x)); }

#if __CUDA_ARCH__ >= 800
    static constexpr bool IN_PAIRS = true;
    static __device__ __forceinline__ unsigned pair(float low, float high)
    {
        unsigned both;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
#else
    static constexpr bool IN_PAIRS = false;
#endif
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

template <class T> struct fuse_limits;
template <> struct fuse_limits<float> {
    static constexpr bool is_float = true;
    static __device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }
    static __device__ __forceinline__ float highest() { return __int_as_float(0x7f800000); }
};
template <> struct fuse_limits<double> {
    static constexpr bool is_float = true;
    static __device__ __forceinline__ double lowest() { return __longlong_as_double(0xfff0000000000000ll); }
    static __device__ __forceinline__ double highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct fuse_limits<long long> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ long long lowest() { return -0x7fffffffffffffffll - 1; }
    static __device__ __forceinline__ long long highest() { return 0x7fffffffffffffffll; }
};
template <> struct fuse_limits<int> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ int lowest() { return -0x7fffffff - 1; }
    static __device__ __forceinline__ int highest() { return 0x7fffffff; }
};
template <> struct fuse_limits<unsigned char> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ unsigned char lowest() { return 0; }
    static __device__ __forceinline__ unsigned char highest() { return 255; }
};
template <> struct fuse_limits<bool> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ bool lowest() { return false; }
    static __device__ __forceinline__ bool highest() { return true; }
};

template <class A, class B> struct fuse_same { static constexpr bool value = false; };
template <class A> struct fuse_same<A, A> { static constexpr bool value = true; };

// Rust's `as`: truncates, saturates, turns NaN into 0, wraps between integers; to bool it asks for non-zero.
template <class To, class From> static __device__ __forceinline__ To fuse_cast(From x)
{
    if constexpr (fuse_same<To, bool>::value) {
        return x != (From)0;
    } else if constexpr (fuse_limits<From>::is_float && !fuse_limits<To>::is_float) {
        if (x != x) return 0;
        if (x <= (From)fuse_limits<To>::lowest()) return fuse_limits<To>::lowest();
        if (x >= (From)fuse_limits<To>::highest()) return fuse_limits<To>::highest();
        return (To)x;
    } else {
        return (To)x;
    }
}

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

// The distance of element `e` of a row, column or line from its first one; STEP as for an offset.
template <int OUTER, int STEP = 2, int INNER, int M>
static __device__ __forceinline__ IDX fuse_along(IDX e, const fuse_extents<INNER>& inner, const fuse_strides<M>& strides)
{
    if constexpr (INNER > 1) return fuse_offset<STEP, OUTER>(fuse_unravel(e, inner), strides);
    else return STEP == 0 ? 0 : STEP == 1 ? e : e * strides.axis[OUTER];
}

// A condition that a lambda knows when it is compiled.
template <bool VALUE> struct fuse_bool { static constexpr bool value = VALUE; };

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

// Reductions: what a lane carries, the neutral element, how lanes join, and the value at the end.
static __device__ __forceinline__ float fuse_plus(float a, float b) { return a + b; }
static __device__ __forceinline__ double fuse_plus(double a, double b) { return a + b; }
static __device__ __forceinline__ long long fuse_plus(long long a, long long b)
{
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

template <class V> struct fuse_sum {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return 0; }
    template <class X> static __device__ __forceinline__ Acc of(X x, long long) { return (Acc)x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_plus(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};

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

// The canonical order above blocks of 16384 elements: consecutive blocks make at most 1024 chunks, which join in the lanes' tree.
static __device__ __forceinline__ long long fuse_blocks_per_chunk(long long len)
{
    const long long blocks = (len + 16383) / 16384;
    return blocks <= 1024 ? 1 : (blocks + 1023) / 1024;
}

// Joins block values as they come: like a binary counter, level k holds the value of 2^k chunks.
template <class R> struct fuse_tree {
    using Acc = typename R::Acc;
    Acc level[11], chunk;
    unsigned chunks;
    long long per_chunk, in_chunk;

    __device__ __forceinline__ fuse_tree(long long len) : chunks(0), per_chunk(fuse_blocks_per_chunk(len)), in_chunk(0) {}

    __device__ __forceinline__ void push(Acc block)
    {
        chunk = in_chunk == 0 ? block : R::join(chunk, block);
        if (++in_chunk == per_chunk) close();
    }

    __device__ __forceinline__ void close()
    {
        Acc carry = chunk;
        bool open = true;
#pragma unroll
        for (int k = 0; k < 11; ++k) {
            if (open && (chunks >> k & 1)) carry = R::join(level[k], carry);
            else if (open) { level[k] = carry; open = false; }
        }
        ++chunks;
        in_chunk = 0;
    }

    __device__ __forceinline__ Acc total()
    {
        if (in_chunk > 0) close();
        Acc all = R::none();
        bool any = false;
#pragma unroll
        for (int k = 0; k < 11; ++k) {
            if (chunks >> k & 1) {
                all = any ? R::join(level[k], all) : level[k];
                any = true;
            }
        }
        return all;
    }
};

// The values of blocks, joined without a barrier a block: every warp leaves its part of a block in shared memory, and all
// threads join what is there now and then and at the end. ID tells the reductions of a kernel apart.
template <int ID, class R, int TEAM_SIZE, int PER, int GROUPS> struct fuse_blocks {
    using Acc = typename R::Acc;
    static constexpr int PENDING = 16, WARPS = TEAM_SIZE / 32, PARTS = GROUPS * WARPS;
    fuse_tree<R> tree;
    int pending;

    __device__ __forceinline__ fuse_blocks(long long len) : tree(len), pending(0) {}

    __device__ __forceinline__ Acc* parts(int block)
    {
        __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * PENDING * PARTS];
        return (Acc*)bytes + block * PARTS;
    }

    __device__ __forceinline__ void push(fuse_lanes<R, TEAM_SIZE, PER, GROUPS>& lanes)
    {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            lanes.fold(g);
            const Acc warp = fuse_over_lanes<R, 32>(lanes.lane[g][0]);
            if (threadIdx.x % 32 == 0) parts(pending)[g * WARPS + threadIdx.x / 32] = warp;
        }
        ++pending;
        if (pending == PENDING) join();
    }

    __device__ __forceinline__ Acc value(int block) { return fuse_over_lanes<R, PARTS>(parts(block)[threadIdx.x % PARTS]); }

    __device__ __forceinline__ void join()
    {
        __syncthreads();
        for (int block = 0; block < pending; ++block) tree.push(value(block));
        __syncthreads();
        pending = 0;
    }

    // The value of all blocks, known to every thread.
    __device__ __forceinline__ Acc total()
    {
        join();
        return tree.total();
    }
};

// The values of a few blocks, at most 16: every thread leaves its lanes of a block in shared memory, and all lanes of all
// blocks are joined at once at the end. ID tells the reductions of a kernel apart; `room` has 1024 values a block.
template <int ID, class R, int TEAM_SIZE, int PER, int GROUPS> struct fuse_few_blocks {
    using Acc = typename R::Acc;
    // Neighbouring lanes that one thread joins, and warps that have a block together.
    static constexpr int LANES = 8, WARPS = 1024 / LANES / 32;
    struct alignas(16) Lanes { Acc of[LANES]; };
    Acc* room;

    __device__ __forceinline__ fuse_few_blocks(void* room) : room((Acc*)room) {}

    __device__ __forceinline__ void* end(int blocks) const { return room + blocks * 1024; }

    __device__ __forceinline__ void put(int block, const fuse_lanes<R, TEAM_SIZE, PER, GROUPS>& lanes)
    {
        struct alignas(sizeof(Acc) * PER < 16 ? sizeof(Acc) * PER : 16) Some { Acc of[PER]; };
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) *(Some*)(room + block * 1024 + (g * TEAM_SIZE + threadIdx.x) * PER) = *(const Some*)lanes.lane[g];
    }

    // The value of all blocks, known to every thread.
    __device__ __forceinline__ Acc total(int count)
    {
        __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * 16 * WARPS];
        Acc* const warps = (Acc*)bytes;
        __syncthreads();
        for (int n = threadIdx.x; n < count * 32 * WARPS; n += TEAM_SIZE) {
            Lanes lanes = *(const Lanes*)(room + n * LANES);
#pragma unroll
            for (int s = 1; s < LANES; s *= 2)
#pragma unroll
                for (int k = 0; k + s < LANES; k += 2 * s) lanes.of[k] = R::join(lanes.of[k], lanes.of[k + s]);
            const Acc warp = fuse_over_lanes<R, 32>(lanes.of[0]);
            if (n % 32 == 0) warps[n / 32] = warp;
        }
        __syncthreads();
        // A lane for each block. Blocks that are not there are left out: even a neutral value may change a sign.
        const int lane = threadIdx.x % 32;
        Acc all = R::none();
        if (lane < count) {
            Acc of[WARPS];
#pragma unroll
            for (int k = 0; k < WARPS; ++k) of[k] = warps[lane * WARPS + k];
#pragma unroll
            for (int s = 1; s < WARPS; s *= 2)
#pragma unroll
                for (int k = 0; k + s < WARPS; k += 2 * s) of[k] = R::join(of[k], of[k + s]);
            all = of[0];
        }
        for (int s = 1; s < count; s *= 2) {
            const Acc other = fuse_shuffle(all, s);
            if ((lane ^ s) / s * s < count) all = R::join(all, other);
        }
        return fuse_from_first(all);
    }
};

// How rows come into the shared memory of a block that takes them in turn, in legs of so many points. Behind the last look at a
// leg of one row the same leg of the next row is sent for, so that memory is busy while the block computes.
static constexpr int fuse_leg = 8192;

#if __CUDA_ARCH__ >= 900
// One thread sends for a whole leg, and a barrier in shared memory counts its bytes. Such copies are of aligned 16 bytes: a
// row lies in its room as far behind an aligned place as it does in global memory, and at most 15 bytes beside it come along.
template <class T> struct fuse_room {
    T* shared;
    const T* next;
    int shift, next_shift;

    __device__ __forceinline__ fuse_room(void* shared) : shared((T*)shared), next(nullptr), shift(0), next_shift(0) {}

    __device__ __forceinline__ void* end(long long len) const { return shared + (len + 15) / 16 * 16 + 16 / sizeof(T); }

    // The row that is sent for from now on.
    __device__ __forceinline__ void aim(const T* row)
    {
        next_shift = (int)((unsigned long long)row % 16 / sizeof(T));
        next = row - next_shift;
    }

    // The row that was sent for becomes the one that is looked at.
    __device__ __forceinline__ void open() { shift = next_shift; }

    __device__ __forceinline__ const T* row() const { return shared + shift; }

    // The bytes of the leg from `base` on; the last one also has what the shift leaves over.
    __device__ __forceinline__ unsigned bytes(int base, int len) const
    {
        const int points = base + fuse_leg < len ? fuse_leg : len + next_shift - base;
        return (unsigned)(points * sizeof(T) + 15) / 16 * 16;
    }

    __device__ __forceinline__ void send(unsigned barrier, int base, int len) const
    {
        const unsigned to = (unsigned)__cvta_generic_to_shared(shared + base);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(to), "l"(next + base), "r"(bytes(base, len)), "r"(barrier) : "memory");
    }
};

template <int TEAM_SIZE, int PER> struct fuse_arrivals {
    static constexpr int LEGS = 262144 / fuse_leg;
    int len, released;
    unsigned parity;

    // Two barriers a leg, which take turns once a row: that it is there, and that every warp is done with it.
    static __device__ __forceinline__ unsigned barrier(int base, int which)
    {
        __shared__ unsigned long long of[2][LEGS];
        return (unsigned)__cvta_generic_to_shared(&of[which][base / fuse_leg]);
    }

    __device__ __forceinline__ fuse_arrivals(int len) : len(len), released(-1), parity(1)
    {
        for (int leg = threadIdx.x; leg < LEGS; leg += TEAM_SIZE) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(leg * fuse_leg, 0)) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier(leg * fuse_leg, 1)), "n"(TEAM_SIZE / 32) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        __syncthreads();
    }

    __device__ __forceinline__ void await(unsigned barrier) const
    {
        asm volatile("{ .reg .pred here; again: mbarrier.try_wait.parity.shared::cta.b64 here, [%0], %1; @!here bra again; }"
                     ::"r"(barrier), "r"(parity) : "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void send(int base, const Rooms&... rooms) const
    {
        const unsigned there = barrier(base, 0), bytes = (rooms.bytes(base, len) + ...);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(there), "r"(bytes) : "memory");
        (rooms.send(there, base, len), ...);
    }

    template <class... Rooms> __device__ __forceinline__ void send_all(const Rooms&... rooms) const
    {
        if (threadIdx.x == 0)
            for (int base = 0; base < len; base += fuse_leg) send(base, rooms...);
    }

    __device__ __forceinline__ void open() { parity ^= 1; }

    // Waits until a leg is there. Where the row is shifted, its last points came with the leg behind it.
    __device__ __forceinline__ void await_leg(int base, int) const
    {
        if (base == 0) await(barrier(0, 0));
        if (base + fuse_leg < len) await(barrier(base + fuse_leg, 0));
    }

    // Says that this warp is done with a leg. It is sent for once all are: so that nobody waits long, behind the next one.
    template <class... Rooms> __device__ __forceinline__ void release(int base, bool more, const Rooms&... rooms)
    {
        __syncwarp();
        if (!more || threadIdx.x % 32 != 0) return;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier(base, 1)) : "memory");
        flush(rooms...);
        released = base;
    }

    template <class... Rooms> __device__ __forceinline__ void flush(const Rooms&... rooms)
    {
        if (threadIdx.x != 0 || released < 0) return;
        await(barrier(released, 1));
        send(released, rooms...);
        released = -1;
    }
};
#elif __CUDA_ARCH__ >= 800
// Every thread sends for the points it reads itself, so that it need not wait for others.
template <class T> struct fuse_room {
    T* shared;
    const T* next;

    __device__ __forceinline__ fuse_room(void* shared) : shared((T*)shared), next(nullptr) {}
    __device__ __forceinline__ void* end(long long len) const { return shared + (len + 15) / 16 * 16 + 16 / sizeof(T); }
    __device__ __forceinline__ void aim(const T* row) { next = row; }
    __device__ __forceinline__ void open() {}
    __device__ __forceinline__ const T* row() const { return shared; }

    template <int PER> __device__ __forceinline__ void send(int e) const
    {
        const unsigned to = (unsigned)__cvta_generic_to_shared(shared + e);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(next + e), "n"(sizeof(T) * PER) : "memory");
    }
};

template <int TEAM_SIZE, int PER> struct fuse_arrivals {
    int len;

    __device__ __forceinline__ fuse_arrivals(int len) : len(len) {}
    __device__ __forceinline__ void open() {}

    template <class... Rooms> __device__ __forceinline__ void send(int base, const Rooms&... rooms) const
    {
#pragma unroll
        for (int k = 0; k < fuse_leg; k += TEAM_SIZE * PER) {
            const int e = base + k + threadIdx.x * PER;
            if (e < len) (rooms.template send<PER>(e), ...);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void send_all(const Rooms&... rooms) const
    {
        for (int base = 0; base < len; base += fuse_leg) send(base, rooms...);
    }

    // Waits until no more legs are on their way than come behind this one, of which so many are the next row's.
    __device__ __forceinline__ void await_leg(int base, int resent) const
    {
        const int behind = (len - 1 - base) / fuse_leg + resent;
        if (behind >= 4) asm volatile("cp.async.wait_group 4;" ::: "memory");
        else if (behind >= 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
        else if (behind == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
    }

    template <class... Rooms> __device__ __forceinline__ void release(int base, bool more, const Rooms&... rooms) const
    {
        if (more) send(base, rooms...);
    }

    template <class... Rooms> __device__ __forceinline__ void flush(const Rooms&...) const {}
};
#endif

__device__ __forceinline__ float fuse_sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ double fuse_sqrt(double x) { return sqrt(x); }

__device__ __forceinline__ int fuse_add(int x, int y) { return (int)((unsigned)x + (unsigned)y); }
__device__ __forceinline__ long long fuse_add(long long x, long long y) { return (long long)((unsigned long long)x + (unsigned long long)y); }
__device__ __forceinline__ unsigned char fuse_add(unsigned char x, unsigned char y) { return (unsigned char)(x + y); }

#if defined(KERNEL_k0_mul_sum_div_add)
// k0_mul_sum_div_add: row[q.0, q.1 | q.2] t1 = C0(q); cast15 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), q.2), C0(0.000001)))), C0(q_weight)))
//   src/lib.rs:2  rms_norm(..)
#if defined(ITEMS)
#define THREADS (TEAM == 32 ? 128 : TEAM)
extern "C" __global__ void __launch_bounds__(THREADS) k0_mul_sum_div_add(
    const T0* q_ptr,
    const fuse_strides<RANK + INNER_RANK> q_strides,
    const T0* q_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> q_weight_strides,
    T0* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* q_row = q_ptr + fuse_offset(at, q_strides);
        const T0* q_weight_row = q_weight_ptr + fuse_offset(at, q_weight_strides);
        T0* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
        fuse_pack<T0, VEC> q_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(q_in[i], q_row + fuse_along<RANK, STEP_0>(e, inner, q_strides), q_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 q = fuse_to_compute(q_in[i][v]);
                const C0 cast = q;
                const C0 mul = cast * cast;
                sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const C0 sum = fuse_sum<C0>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        fuse_pack<T0, VEC> q_weight_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            fuse_read<STEP_1>(q_weight_in[i], q_weight_row + fuse_along<RANK, STEP_1>(e, inner, q_weight_strides), q_weight_strides.axis[RANK + INNER_RANK - 1]);
            C0 cast15_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 q = fuse_to_compute(q_in[i][v]);
                const C0 cast = q;
                const C0 mul2 = cast * rsqrt2;
                const C0 q_weight = fuse_to_compute(q_weight_in[i][v]);
                const C0 cast3 = q_weight;
                const C0 mul3 = mul2 * cast3;
                const C0 cast4 = mul3;
                cast15_out[v] = cast4;
            }
            fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#elif defined(RESIDENT)
#define THREADS TEAM
#define LEGS (16384 / fuse_leg)
#define ITEMS (fuse_leg / (TEAM * VEC))
extern "C" __global__ void __launch_bounds__(THREADS) k0_mul_sum_div_add(
    const T0* q_ptr,
    const fuse_strides<RANK + INNER_RANK> q_strides,
    const T0* q_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> q_weight_strides,
    T0* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    extern __shared__ uint4 fuse_shared[];
    fuse_room<T0> q_room(fuse_shared);
    void* const lanes_room = q_room.end(len);
    const int blocks = (int)((len + 16383) / 16384);
    fuse_arrivals<TEAM, VEC> arrivals((int)len);
    if (blockIdx.x < outer.points) {
        const fuse_at<RANK> next = fuse_unravel((IDX)blockIdx.x, outer);
        q_room.aim(q_ptr + fuse_offset(next, q_strides));
        arrivals.send_all(q_room);
    }
    for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* q_row = q_ptr + fuse_offset(at, q_strides);
        const T0* q_weight_row = q_weight_ptr + fuse_offset(at, q_weight_strides);
        T0* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        q_room.open();
        arrivals.open();
        const bool more = row + (IDX)gridDim.x < (IDX)outer.points;
        if (more) {
            const fuse_at<RANK> next = fuse_unravel(row + (IDX)gridDim.x, outer);
            q_room.aim(q_ptr + fuse_offset(next, q_strides));
        }
        fuse_pack<T0, VEC> q_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_few_blocks<3, fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_blocks(lanes_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                arrivals.await_leg((int)base, more ? (int)base / fuse_leg : 0);
                fuse_pack<T0, VEC> (&q_in)[ITEMS] = q_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(q_in[i], q_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
                arrivals.release((int)base, more, q_room);
            }
            sum_blocks.put(block, sum_lanes);
        }
        arrivals.flush(q_room);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : GROUPS3;
                fuse_pack<T0, VEC> q_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(q_in[i], q_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                arrivals.await_leg((int)base, more ? KEPT * LEGS : 0);
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += GROUPS3 * TEAM * VEC) step(some, fuse_bool<false>());
            }
            sum_blocks.put((int)(block / 16384), sum_lanes);
        }
        const C0 sum = fuse_sum<C0>::value(sum_blocks.total(blocks));
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : ITEMS;
                fuse_pack<T0, VEC> q_in[SOME];
                fuse_pack<T0, VEC> q_weight_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(q_in[i], q_room.row() + e, 1);
                        fuse_read<STEP_1>(q_weight_in[i], q_weight_row + fuse_along<RANK, STEP_1>(e, inner, q_weight_strides), q_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast15_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 q_weight = fuse_to_compute(q_weight_in[i][v]);
                        const C0 cast3 = q_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast15_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += ITEMS * TEAM * VEC) step(some, fuse_bool<false>());
                arrivals.release((int)base, more, q_room);
            }
        }
        arrivals.flush(q_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                fuse_pack<T0, VEC> (&q_in)[ITEMS] = q_kept[block * LEGS + leg];
                fuse_pack<T0, VEC> q_weight_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_1>(q_weight_in[i], q_weight_row + fuse_along<RANK, STEP_1>(e, inner, q_weight_strides), q_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast15_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 q_weight = fuse_to_compute(q_weight_in[i][v]);
                        const C0 cast3 = q_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast15_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                }
            }
        }
    }
}
#else
#define THREADS TEAM
#define ITEMS (TEAM == 1024 ? 16 : 4)
extern "C" __global__ void __launch_bounds__(THREADS) k0_mul_sum_div_add(
    const T0* q_ptr,
    const fuse_strides<RANK + INNER_RANK> q_strides,
    const T0* q_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> q_weight_strides,
    T0* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* q_row = q_ptr + fuse_offset(at, q_strides);
        const T0* q_weight_row = q_weight_ptr + fuse_offset(at, q_weight_strides);
        T0* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<3, fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<T0, VEC> q_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(q_in[i], q_row + fuse_along<RANK, STEP_0>(e, inner, q_strides), q_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            sum_blocks.push(sum_lanes);
        }
        const C0 sum = fuse_sum<C0>::value(sum_blocks.total());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        for (IDX block = 0; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<T0, VEC> q_in[ITEMS];
                fuse_pack<T0, VEC> q_weight_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(q_in[i], q_row + fuse_along<RANK, STEP_0>(e, inner, q_strides), q_strides.axis[RANK + INNER_RANK - 1]);
                        fuse_read<STEP_1>(q_weight_in[i], q_weight_row + fuse_along<RANK, STEP_1>(e, inner, q_weight_strides), q_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast15_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 q = fuse_to_compute(q_in[i][v]);
                        const C0 cast = q;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 q_weight = fuse_to_compute(q_weight_in[i][v]);
                        const C0 cast3 = q_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast15_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
        }
    }
}
#endif
#endif

#if defined(KERNEL_k1_mul_sum_div_add)
// k1_mul_sum_div_add: row[k.0, k.1 | k.2] t1 = C0(k); cast29 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), k.2), C0(0.000001)))), C0(k_weight)))
//   src/lib.rs:2  rms_norm(..)
//   src/lib.rs:3  rms_norm(..)
#if defined(ITEMS)
#define THREADS (TEAM == 32 ? 128 : TEAM)
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_sum_div_add(
    const T0* k2_ptr,
    const fuse_strides<RANK + INNER_RANK> k2_strides,
    const T0* k_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> k_weight_strides,
    T0* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* k2_row = k2_ptr + fuse_offset(at, k2_strides);
        const T0* k_weight_row = k_weight_ptr + fuse_offset(at, k_weight_strides);
        T0* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
        fuse_pack<T0, VEC> k2_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(k2_in[i], k2_row + fuse_along<RANK, STEP_0>(e, inner, k2_strides), k2_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 k2 = fuse_to_compute(k2_in[i][v]);
                const C0 cast = k2;
                const C0 mul = cast * cast;
                sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const C0 sum = fuse_sum<C0>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        fuse_pack<T0, VEC> k_weight_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            fuse_read<STEP_1>(k_weight_in[i], k_weight_row + fuse_along<RANK, STEP_1>(e, inner, k_weight_strides), k_weight_strides.axis[RANK + INNER_RANK - 1]);
            C0 cast29_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 k2 = fuse_to_compute(k2_in[i][v]);
                const C0 cast = k2;
                const C0 mul2 = cast * rsqrt2;
                const C0 k_weight = fuse_to_compute(k_weight_in[i][v]);
                const C0 cast3 = k_weight;
                const C0 mul3 = mul2 * cast3;
                const C0 cast4 = mul3;
                cast29_out[v] = cast4;
            }
            fuse_write<STEP_2>(cast29_row + fuse_along<RANK, STEP_2>(e, inner, cast29_strides), cast29_out, cast29_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#elif defined(RESIDENT)
#define THREADS TEAM
#define LEGS (16384 / fuse_leg)
#define ITEMS (fuse_leg / (TEAM * VEC))
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_sum_div_add(
    const T0* k2_ptr,
    const fuse_strides<RANK + INNER_RANK> k2_strides,
    const T0* k_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> k_weight_strides,
    T0* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    extern __shared__ uint4 fuse_shared[];
    fuse_room<T0> k2_room(fuse_shared);
    void* const lanes_room = k2_room.end(len);
    const int blocks = (int)((len + 16383) / 16384);
    fuse_arrivals<TEAM, VEC> arrivals((int)len);
    if (blockIdx.x < outer.points) {
        const fuse_at<RANK> next = fuse_unravel((IDX)blockIdx.x, outer);
        k2_room.aim(k2_ptr + fuse_offset(next, k2_strides));
        arrivals.send_all(k2_room);
    }
    for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* k2_row = k2_ptr + fuse_offset(at, k2_strides);
        const T0* k_weight_row = k_weight_ptr + fuse_offset(at, k_weight_strides);
        T0* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        k2_room.open();
        arrivals.open();
        const bool more = row + (IDX)gridDim.x < (IDX)outer.points;
        if (more) {
            const fuse_at<RANK> next = fuse_unravel(row + (IDX)gridDim.x, outer);
            k2_room.aim(k2_ptr + fuse_offset(next, k2_strides));
        }
        fuse_pack<T0, VEC> k2_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_few_blocks<3, fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_blocks(lanes_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                arrivals.await_leg((int)base, more ? (int)base / fuse_leg : 0);
                fuse_pack<T0, VEC> (&k2_in)[ITEMS] = k2_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(k2_in[i], k2_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
                arrivals.release((int)base, more, k2_room);
            }
            sum_blocks.put(block, sum_lanes);
        }
        arrivals.flush(k2_room);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : GROUPS3;
                fuse_pack<T0, VEC> k2_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(k2_in[i], k2_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                arrivals.await_leg((int)base, more ? KEPT * LEGS : 0);
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += GROUPS3 * TEAM * VEC) step(some, fuse_bool<false>());
            }
            sum_blocks.put((int)(block / 16384), sum_lanes);
        }
        const C0 sum = fuse_sum<C0>::value(sum_blocks.total(blocks));
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : ITEMS;
                fuse_pack<T0, VEC> k2_in[SOME];
                fuse_pack<T0, VEC> k_weight_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(k2_in[i], k2_room.row() + e, 1);
                        fuse_read<STEP_1>(k_weight_in[i], k_weight_row + fuse_along<RANK, STEP_1>(e, inner, k_weight_strides), k_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast29_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 k_weight = fuse_to_compute(k_weight_in[i][v]);
                        const C0 cast3 = k_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast29_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast29_row + fuse_along<RANK, STEP_2>(e, inner, cast29_strides), cast29_out, cast29_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += ITEMS * TEAM * VEC) step(some, fuse_bool<false>());
                arrivals.release((int)base, more, k2_room);
            }
        }
        arrivals.flush(k2_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                fuse_pack<T0, VEC> (&k2_in)[ITEMS] = k2_kept[block * LEGS + leg];
                fuse_pack<T0, VEC> k_weight_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_1>(k_weight_in[i], k_weight_row + fuse_along<RANK, STEP_1>(e, inner, k_weight_strides), k_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast29_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 k_weight = fuse_to_compute(k_weight_in[i][v]);
                        const C0 cast3 = k_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast29_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast29_row + fuse_along<RANK, STEP_2>(e, inner, cast29_strides), cast29_out, cast29_strides.axis[RANK + INNER_RANK - 1]);
                }
            }
        }
    }
}
#else
#define THREADS TEAM
#define ITEMS (TEAM == 1024 ? 16 : 4)
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_sum_div_add(
    const T0* k2_ptr,
    const fuse_strides<RANK + INNER_RANK> k2_strides,
    const T0* k_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> k_weight_strides,
    T0* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* k2_row = k2_ptr + fuse_offset(at, k2_strides);
        const T0* k_weight_row = k_weight_ptr + fuse_offset(at, k_weight_strides);
        T0* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<3, fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<T0, VEC> k2_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(k2_in[i], k2_row + fuse_along<RANK, STEP_0>(e, inner, k2_strides), k2_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul = cast * cast;
                        sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            sum_blocks.push(sum_lanes);
        }
        const C0 sum = fuse_sum<C0>::value(sum_blocks.total());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        for (IDX block = 0; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<T0, VEC> k2_in[ITEMS];
                fuse_pack<T0, VEC> k_weight_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(k2_in[i], k2_row + fuse_along<RANK, STEP_0>(e, inner, k2_strides), k2_strides.axis[RANK + INNER_RANK - 1]);
                        fuse_read<STEP_1>(k_weight_in[i], k_weight_row + fuse_along<RANK, STEP_1>(e, inner, k_weight_strides), k_weight_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    C0 cast29_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const C0 k2 = fuse_to_compute(k2_in[i][v]);
                        const C0 cast = k2;
                        const C0 mul2 = cast * rsqrt2;
                        const C0 k_weight = fuse_to_compute(k_weight_in[i][v]);
                        const C0 cast3 = k_weight;
                        const C0 mul3 = mul2 * cast3;
                        const C0 cast4 = mul3;
                        cast29_out[v] = cast4;
                    }
                    fuse_write<STEP_2>(cast29_row + fuse_along<RANK, STEP_2>(e, inner, cast29_strides), cast29_out, cast29_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
        }
    }
}
#endif
#endif

#if defined(KERNEL_k2_add)
// k2_add: map[count.0] add32 = add(count, 1)
//   src/lib.rs:4  add(..)
extern "C" __global__ void __launch_bounds__(256) k2_add(
    const long long* count_ptr,
    const fuse_strides<RANK> count_strides,
    long long* add32_ptr,
    const fuse_strides<RANK> add32_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<long long, VEC> count_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(count_in[u], count_ptr + fuse_offset<STEP_0>(at[u], count_strides), count_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        long long add32_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const long long count = fuse_to_compute(count_in[u][v]);
            const long long add = fuse_add(count, 1LL);
            add32_out[v] = add;
        }
        fuse_write<STEP_1>(add32_ptr + fuse_offset<STEP_1>(at[u], add32_strides), add32_out, add32_strides.axis[RANK - 1], live);
    }
}
#endif

#if defined(KERNEL_k0_small)
// k0_small: 3 kernels in one launch
#undef RANK
#undef VEC
#define THREADS 256
// k0_mul_sum_div_add: row[q.0, q.1 | q.2] t1 = C0(q); cast15 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), q.2), C0(0.000001)))), C0(q_weight)))
//   src/lib.rs:2  rms_norm(..)
#define RANK PART_0_RANK
#define VEC PART_0_VEC
#define INNER_RANK PART_0_INNER_RANK
#define TEAM PART_0_TEAM
#define ITEMS PART_0_ITEMS
#define WHOLE PART_0_WHOLE
#define STEP_0 PART_0_STEP_0
#define STEP_1 PART_0_STEP_1
#define STEP_2 PART_0_STEP_2
static __device__ __forceinline__ void k0_mul_sum_div_add(
    const unsigned block,
    const T0* q_ptr,
    const fuse_strides<RANK + INNER_RANK> q_strides,
    const T0* q_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> q_weight_strides,
    T0* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)block * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* q_row = q_ptr + fuse_offset(at, q_strides);
        const T0* q_weight_row = q_weight_ptr + fuse_offset(at, q_weight_strides);
        T0* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
        fuse_pack<T0, VEC> q_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(q_in[i], q_row + fuse_along<RANK, STEP_0>(e, inner, q_strides), q_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 q = fuse_to_compute(q_in[i][v]);
                const C0 cast = q;
                const C0 mul = cast * cast;
                sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const C0 sum = fuse_sum<C0>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        fuse_pack<T0, VEC> q_weight_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            fuse_read<STEP_1>(q_weight_in[i], q_weight_row + fuse_along<RANK, STEP_1>(e, inner, q_weight_strides), q_weight_strides.axis[RANK + INNER_RANK - 1]);
            C0 cast15_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 q = fuse_to_compute(q_in[i][v]);
                const C0 cast = q;
                const C0 mul2 = cast * rsqrt2;
                const C0 q_weight = fuse_to_compute(q_weight_in[i][v]);
                const C0 cast3 = q_weight;
                const C0 mul3 = mul2 * cast3;
                const C0 cast4 = mul3;
                cast15_out[v] = cast4;
            }
            fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#undef RANK
#undef VEC
#undef INNER_RANK
#undef TEAM
#undef ITEMS
#undef WHOLE
#undef STEP_0
#undef STEP_1
#undef STEP_2
// k1_mul_sum_div_add: row[k.0, k.1 | k.2] t1 = C0(k); cast29 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), k.2), C0(0.000001)))), C0(k_weight)))
//   src/lib.rs:2  rms_norm(..)
//   src/lib.rs:3  rms_norm(..)
#define RANK PART_1_RANK
#define VEC PART_1_VEC
#define INNER_RANK PART_1_INNER_RANK
#define TEAM PART_1_TEAM
#define ITEMS PART_1_ITEMS
#define WHOLE PART_1_WHOLE
#define STEP_0 PART_1_STEP_0
#define STEP_1 PART_1_STEP_1
#define STEP_2 PART_1_STEP_2
static __device__ __forceinline__ void k1_mul_sum_div_add(
    const unsigned block,
    const T0* k2_ptr,
    const fuse_strides<RANK + INNER_RANK> k2_strides,
    const T0* k_weight_ptr,
    const fuse_strides<RANK + INNER_RANK> k_weight_strides,
    T0* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long extent_size,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    const C0 extent = (C0)extent_size;
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)block * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const T0* k2_row = k2_ptr + fuse_offset(at, k2_strides);
        const T0* k_weight_row = k_weight_ptr + fuse_offset(at, k_weight_strides);
        T0* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const C0 cast2 = fuse_cast<C0>(1e-6);
        constexpr int GROUPS3 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<C0>, TEAM, VEC, GROUPS3> sum_lanes;
        fuse_pack<T0, VEC> k2_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(k2_in[i], k2_row + fuse_along<RANK, STEP_0>(e, inner, k2_strides), k2_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 k2 = fuse_to_compute(k2_in[i][v]);
                const C0 cast = k2;
                const C0 mul = cast * cast;
                sum_lanes.add(i, v, fuse_sum<C0>::of(mul, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const C0 sum = fuse_sum<C0>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        const C0 div = sum / extent;
        const C0 add = div + cast2;
        const C0 rsqrt2 = 1.0f / fuse_sqrt(add);
        fuse_pack<T0, VEC> k_weight_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            fuse_read<STEP_1>(k_weight_in[i], k_weight_row + fuse_along<RANK, STEP_1>(e, inner, k_weight_strides), k_weight_strides.axis[RANK + INNER_RANK - 1]);
            C0 cast29_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const C0 k2 = fuse_to_compute(k2_in[i][v]);
                const C0 cast = k2;
                const C0 mul2 = cast * rsqrt2;
                const C0 k_weight = fuse_to_compute(k_weight_in[i][v]);
                const C0 cast3 = k_weight;
                const C0 mul3 = mul2 * cast3;
                const C0 cast4 = mul3;
                cast29_out[v] = cast4;
            }
            fuse_write<STEP_2>(cast29_row + fuse_along<RANK, STEP_2>(e, inner, cast29_strides), cast29_out, cast29_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#undef RANK
#undef VEC
#undef INNER_RANK
#undef TEAM
#undef ITEMS
#undef WHOLE
#undef STEP_0
#undef STEP_1
#undef STEP_2
// k2_add: map[count.0] add32 = add(count, 1)
//   src/lib.rs:4  add(..)
#define RANK PART_2_RANK
#define VEC PART_2_VEC
#define STEP_0 PART_2_STEP_0
#define STEP_1 PART_2_STEP_1
static __device__ __forceinline__ void k2_add(
    const unsigned block,
    const long long* count_ptr,
    const fuse_strides<RANK> count_strides,
    long long* add32_ptr,
    const fuse_strides<RANK> add32_strides,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)block * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<long long, VEC> count_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(count_in[u], count_ptr + fuse_offset<STEP_0>(at[u], count_strides), count_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        long long add32_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const long long count = fuse_to_compute(count_in[u][v]);
            const long long add = fuse_add(count, 1LL);
            add32_out[v] = add;
        }
        fuse_write<STEP_1>(add32_ptr + fuse_offset<STEP_1>(at[u], add32_strides), add32_out, add32_strides.axis[RANK - 1], live);
    }
}
#undef RANK
#undef VEC
#undef STEP_0
#undef STEP_1
// `of` is the first block behind those of a part.
struct fuse_ends { unsigned of[4]; };
extern "C" __global__ void __launch_bounds__(256) k0_small(
    const __grid_constant__ fuse_ends end,
    const T0* of_0_0,
    const fuse_strides<PART_0_RANK + PART_0_INNER_RANK> of_0_1,
    const T0* of_0_2,
    const fuse_strides<PART_0_RANK + PART_0_INNER_RANK> of_0_3,
    T0* of_0_4,
    const fuse_strides<PART_0_RANK + PART_0_INNER_RANK> of_0_5,
    const long long of_0_6,
    const fuse_extents<PART_0_RANK> of_0_7,
    const fuse_extents<PART_0_INNER_RANK> of_0_8,
    const T0* of_1_0,
    const fuse_strides<PART_1_RANK + PART_1_INNER_RANK> of_1_1,
    const T0* of_1_2,
    const fuse_strides<PART_1_RANK + PART_1_INNER_RANK> of_1_3,
    T0* of_1_4,
    const fuse_strides<PART_1_RANK + PART_1_INNER_RANK> of_1_5,
    const long long of_1_6,
    const fuse_extents<PART_1_RANK> of_1_7,
    const fuse_extents<PART_1_INNER_RANK> of_1_8,
    const long long* of_2_0,
    const fuse_strides<PART_2_RANK> of_2_1,
    long long* of_2_2,
    const fuse_strides<PART_2_RANK> of_2_3,
    const fuse_extents<PART_2_RANK> of_2_4) {
    fuse_behind();
    int part = 0;
    for (int step = 2; step > 0; step /= 2)
        if (end.of[part + step - 1] <= blockIdx.x) part += step;
    const unsigned block = blockIdx.x - (part > 0 ? end.of[part - 1] : 0);
    switch (part) {
        case 0: return k0_mul_sum_div_add(block, of_0_0, of_0_1, of_0_2, of_0_3, of_0_4, of_0_5, of_0_6, of_0_7, of_0_8);
        case 1: return k1_mul_sum_div_add(block, of_1_0, of_1_1, of_1_2, of_1_3, of_1_4, of_1_5, of_1_6, of_1_7, of_1_8);
        case 2: return k2_add(block, of_2_0, of_2_1, of_2_2, of_2_3, of_2_4);
    }
}
#endif

