// attention_training

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

// Philox 4x32-10 (Salmon et al., 2011): the four words of one counter.
static __device__ __forceinline__ void fuse_philox(unsigned (&words)[4], unsigned long long seed, unsigned long long counter)
{
    unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
    unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ key0;
        c1 = low1;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

// One random draw at N points of an access, STEP apart. Element i is word i % 4 of counter offset + i / 4; neighbours share it.
template <int N, int STEP> struct fuse_draw {
    static constexpr bool IS_RUN = N >= 4 && STEP == 1;
    unsigned long long seed, offset, counter;
    unsigned words[N < 4 ? 1 : N / 4][4];
    bool together;

    __device__ __forceinline__ fuse_draw(unsigned long long seed, unsigned long long offset)
        : seed(seed), offset(offset), counter(~0ull), together(false) {}

    // Elements are counted from 0 on.
    __device__ __forceinline__ unsigned long long counter_of(long long i) const { return offset + ((unsigned long long)i >> 2); }

    // The words of an access from element i on, if they are all of some counters.
    __device__ __forceinline__ void meet(long long i)
    {
        together = (i & 3) == 0;
#pragma unroll
        for (int k = 0; k < N / 4; ++k) if (together) fuse_philox(words[k], seed, counter_of(i) + k);
    }

    // The same if the first and the last of them are not. That is rare, so it is short: epilogues repeat it for many accesses, and long
    // ones do not stay in the cache of instructions.
    __device__ __forceinline__ void meet_apart(long long i)
    {
#pragma unroll 1
        for (int k = 0; k <= N / 4; ++k) {
            unsigned own[4];
            fuse_philox(own, seed, counter_of(i) + k);
#pragma unroll
            for (int v = 0; v < N; ++v) {
                const int at = (int)(i & 3) + v - 4 * k;
                if (at >= 0 && at < 4) words[v / 4][v % 4] = pick(own, at);
            }
        }
    }

    static __device__ __forceinline__ unsigned pick(const unsigned (&of)[4], int k)
    {
        return k < 2 ? (k == 0 ? of[0] : of[1]) : (k == 2 ? of[2] : of[3]);
    }

    // The counter of element i, in the first words.
    __device__ __forceinline__ void meet_alone(long long i)
    {
        const unsigned long long wanted = counter_of(i);
        if (wanted != counter) fuse_philox(words[0], seed, wanted);
        counter = wanted;
    }

    // The word of element i, which is point v of the access.
    __device__ __forceinline__ unsigned word(long long i, int v)
    {
        if (IS_RUN && v == 0) {
            meet(i);
            if (!together) meet_apart(i);
        }
        if (!IS_RUN) meet_alone(i);
        return IS_RUN ? words[v / 4][v % 4] : pick(words[0], (int)(i & 3));
    }

    __device__ __forceinline__ float uniform(long long i, int v) { return (float)(word(i, v) >> 8) * 5.9604644775390625e-08f; }

    // Whether that number is at least one whose word is the least there is.
    __device__ __forceinline__ bool reaches(long long i, int v, unsigned least) { return word(i, v) >= least; }

    // Which of 32 elements, from one on that is the first of a counter, reach it.
    __device__ __forceinline__ unsigned reaching(long long i, unsigned least) const
    {
        unsigned bits = 0;
        const unsigned long long first = counter_of(i);
#pragma unroll 2
        for (int k = 0; k < 8; ++k) {
            unsigned own[4];
            fuse_philox(own, seed, first + k);
            bits >>= 4;
#pragma unroll
            for (int v = 0; v < 4; ++v) bits |= own[v] >= least ? 1u << (28 + v) : 0u;
        }
        return bits;
    }

    // Box-Muller over a pair of words in double: even elements take the cosine, odd ones the sine.
    __device__ __forceinline__ float normal(long long i, int v)
    {
        if (IS_RUN && v == 0) meet(i);
        if (!together) meet_alone(i);
        const int k = together ? v & 3 : (int)(i & 3), of = N < 4 ? 0 : v / 4;
        const unsigned* own = together ? words[of] : words[0];
        const double first = k < 2 ? own[0] : own[2], second = k < 2 ? own[1] : own[3];
        const double radius = sqrt(-2.0 * log((first + 1.0) * 2.3283064365386963e-10));
        const double angle = 6.283185307179586 * (second * 2.3283064365386963e-10);
        return (float)(radius * ((k & 1) == 0 ? cos(angle) : sin(angle)));
    }
};

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

// Whether a goes before b in the order -inf < .. < -0 < +0 < .. < inf.
static __device__ __forceinline__ bool fuse_below(float a, float b)
{
    return a < b || (a == b && __float_as_int(a) < 0 && __float_as_int(b) >= 0);
}

static __device__ __forceinline__ bool fuse_below(double a, double b)
{
    return a < b || (a == b && __double_as_longlong(a) < 0 && __double_as_longlong(b) >= 0);
}

static __device__ __forceinline__ bool fuse_below(long long a, long long b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(int a, int b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(unsigned char a, unsigned char b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(bool a, bool b) { return !a && b; }

// The larger and the smaller of two; NaN wins in either direction.
template <class V> static __device__ __forceinline__ V fuse_larger(V a, V b)
{
    return a != a || !(b != b || fuse_below(a, b)) ? a : b;
}

template <class V> static __device__ __forceinline__ V fuse_smaller(V a, V b)
{
    return a != a || !(b != b || fuse_below(b, a)) ? a : b;
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float fuse_larger(float a, float b)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

static __device__ __forceinline__ float fuse_smaller(float a, float b)
{
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
}
#endif

template <class V> struct fuse_largest {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return fuse_limits<V>::lowest(); }
    static __device__ __forceinline__ Acc of(V x, long long) { return x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_larger(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};

template <class V> struct fuse_smallest {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return fuse_limits<V>::highest(); }
    static __device__ __forceinline__ Acc of(V x, long long) { return x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_smaller(a, b); }
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

#if defined(HEAD_KEYS)
// Barriers in shared memory and copies to there that arrive at them, from Hopper on.
static __device__ __forceinline__ void fuse_barrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void fuse_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives once all that this thread has copied by fuse_copy is there.
static __device__ __forceinline__ void fuse_arrive_behind_copies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}

// Copies 16 bytes, or writes as many zeros.
static __device__ __forceinline__ void fuse_copy(unsigned to, const void* from, bool live)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(live ? 16 : 0) : "memory");
}

// Waits for all arrivals of a phase; phases are counted modulo 2.
static __device__ __forceinline__ void fuse_await(unsigned barrier, unsigned phase)
{
    unsigned over;
    do {
        asm volatile("{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\nselp.u32 %0, 1, 0, over;\n}"
                     : "=r"(over) : "r"(barrier), "r"(phase) : "memory");
    } while (!over);
}
#endif

#if defined(HEAD_KEYS)
// Hopper's products of a warpgroup: 64 rows, N columns, 16 deep, with sums in float. The left operand lies in shared memory or
// in registers, the right one in shared memory, along its inner axis (`shared`, `registers_along`) or across it (`registers`).
// They run on while the threads do other things: see "Asynchronous Warpgroup Level Matrix Instructions" of the PTX manual.
// Between their beginning and the end of the wait nobody may touch the sums, which fuse_hold tells the compiler.
template <class T, int N> struct fuse_wgmma_heads;

static __device__ __forceinline__ void fuse_products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void fuse_products_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int RUNNING> static __device__ __forceinline__ void fuse_products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(RUNNING) : "memory");
}

template <int N> static __device__ __forceinline__ void fuse_hold(float (&x)[N])
{
#pragma unroll
    for (int k = 0; k < N; ++k) asm volatile("" : "+f"(x[k]) :: "memory");
}

// What ordinary copies have brought may be read by products.
static __device__ __forceinline__ void fuse_show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// How a matrix lies in shared memory: rows of WIDTH elements, which are 128 or 64 bytes, eight of them an atom, in which the places of
// 16 bytes are exchanged so that eight rows are read from different banks. `across`: bytes to the atom of the next columns.
template <int WIDTH> static __device__ __forceinline__ unsigned long long fuse_lie(unsigned at, unsigned across)
{
    static_assert(WIDTH == 64 || WIDTH == 32, "rows of 128 or 64 bytes");
    // It is the same for all threads of a warp, which is not seen by the compiler.
    const unsigned low = __shfl_sync(~0u, (at & 0x3ffff) >> 4 | across >> 4 << 16, 0);
    return low | (unsigned long long)(WIDTH * 16 >> 4 | (WIDTH == 64 ? 1u : 2u) << 30) << 32;
}

// The place of the 16 bytes with this number in a row.
template <int WIDTH> static __device__ __forceinline__ int fuse_place(int row, int number)
{
    return WIDTH == 64 ? number ^ row % 8 : number ^ row / 2 % 4;
}

#define FUSE_SUMS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define FUSE_TO_32 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define FUSE_SUMS_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FUSE_TO_64 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define FUSE_SUMS_96 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FUSE_TO_96 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define FUSE_SUMS_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FUSE_TO_128 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define FUSE_SUMS_160 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define FUSE_TO_160 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define FUSE_SUMS_192 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FUSE_TO_192 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
    "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
    "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define FUSE_SUMS_256 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define FUSE_TO_256 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
    "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
    "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), \
    "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
    "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
    "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
    "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

// The operands behind the sums are A to F by number.
#define FUSE_WGMMA(T, TYPE, N, A, B, C, D, E, F) \
    template <> struct fuse_wgmma_heads<T, N> { \
        static __device__ __forceinline__ void shared(float (&d)[N / 2], unsigned long long a, unsigned long long b, int adds) \
        { \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #C ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " " \
                         "{" FUSE_SUMS_##N "}, %" #A ", %" #B ", adds, 1, 1, 0, 0;\n}" \
                         : FUSE_TO_##N : "l"(a), "l"(b), "r"(adds)); \
        } \
        static __device__ __forceinline__ void registers(float (&d)[N / 2], const unsigned* a, unsigned long long b, int adds) \
        { \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #F ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " " \
                         "{" FUSE_SUMS_##N "}, {%" #A ", %" #B ", %" #C ", %" #D "}, %" #E ", adds, 1, 1, 1;\n}" \
                         : FUSE_TO_##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds)); \
        } \
        static __device__ __forceinline__ void registers_along(float (&d)[N / 2], const unsigned* a, unsigned long long b, int adds) \
        { \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #F ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " " \
                         "{" FUSE_SUMS_##N "}, {%" #A ", %" #B ", %" #C ", %" #D "}, %" #E ", adds, 1, 1, 0;\n}" \
                         : FUSE_TO_##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds)); \
        } \
    };
#define FUSE_WGMMAS(T, TYPE) \
    FUSE_WGMMA(T, TYPE, 32, 16, 17, 18, 19, 20, 21) \
    FUSE_WGMMA(T, TYPE, 64, 32, 33, 34, 35, 36, 37) \
    FUSE_WGMMA(T, TYPE, 96, 48, 49, 50, 51, 52, 53) \
    FUSE_WGMMA(T, TYPE, 128, 64, 65, 66, 67, 68, 69) \
    FUSE_WGMMA(T, TYPE, 160, 80, 81, 82, 83, 84, 85) \
    FUSE_WGMMA(T, TYPE, 192, 96, 97, 98, 99, 100, 101) \
    FUSE_WGMMA(T, TYPE, 256, 128, 129, 130, 131, 132, 133)
#endif

#if defined(HEAD_KEYS)
FUSE_WGMMAS(fuse_bf16, "bf16")
#endif

#if defined(HEAD_KEYS)
// What kernels of attention are called with, and how blocks of threads share the queries.
struct fuse_heads { long long batch[3], row; };

// Extents; the batch axes together are `heads`, of which `section` are worked on at a time: their keys and values stay in the L2 cache.
// So many blocks share the keys of a tile, and so many heads of the last batch axis are rows of one, see the attention of warps. Of the
// tiles of a head so many are whole, see `fuse_attention`.
struct fuse_attention_shape { long long batch[3], m, n, depth, columns; int tiles, heads, section, splits, folded, whole; };

template <class T> struct fuse_matrices { const T* from; const fuse_heads& strides; };

// Where the numbers of a head's rows begin, one a row, behind those of the heads before it.
static __device__ __forceinline__ long long fuse_rows_before(const int (&batch)[3], const fuse_attention_shape& shape)
{
    return ((batch[0] * shape.batch[1] + batch[1]) * shape.batch[2] + batch[2]) * shape.m;
}

// Whether a logarithm is still exact enough in a float when it is the logarithm of a sum of exponentials of scores so large.
static __device__ __forceinline__ bool fuse_is_near(float log) { return fabsf(log) <= 64.0f; }

// The logarithm of the sum of a row's exponentials, for the way back. Where scores are large, as behind a mask that adds -1e9 to all
// of a row, only the largest is, and the rest of it comes behind the logarithms of all rows. A row without keys has weights of 0 on
// the way back, or weights that are no numbers.
template <bool ZERO>
static __device__ __forceinline__ void fuse_put_log(float* logs, const fuse_attention_shape& shape, const int (&batch)[3], int row, float largest,
                                                    float factor, float sum)
{
    const float most = largest * factor, log = logf(sum), nothing = __int_as_float(ZERO ? 0x7f800000 : 0x7fffffff);
    float* const to = logs + fuse_rows_before(batch, shape) + row;
    *to = sum == 0.0f ? nothing : fuse_is_near(most) ? __fmaf_rn(largest, factor, log) : most;
    if (!fuse_is_near(most)) to[shape.heads * shape.m] = sum == 0.0f ? 0.0f : log + __fmaf_rn(largest, factor, -most);
}

static __device__ __forceinline__ float fuse_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// What a block of threads computes at a time: TM queries from m on, at one place of the batch axes, against so many blocks of TN keys.
template <int TM, int TN, bool CAUSAL> struct fuse_query_tile {
    int m, batch[3], blocks;

    // In a section the longest tiles come first, so that at the end short ones fill up what is left.
    __device__ __forceinline__ fuse_query_tile(int number, const fuse_attention_shape& shape) : fuse_query_tile(number, shape, shape.tiles) {}

    // Of so many tiles a head.
    __device__ __forceinline__ fuse_query_tile(int number, const fuse_attention_shape& shape, int tiles)
    {
        const int in_section = shape.section * tiles, section = number / in_section, within = number - section * in_section;
        const int heads = min(shape.section, shape.heads - section * shape.section);
        const int tile = within / heads, head = section * shape.section + within - tile * heads;
        const int b2 = (int)shape.batch[2] / shape.folded, b1 = (int)shape.batch[1], two = head / b2, one = two / b1;
        batch[0] = one;
        batch[1] = two - one * b1;
        batch[2] = head - two * b2;
        m = (CAUSAL ? tiles - 1 - tile : tile) * TM;
        const int keys = CAUSAL ? min((int)shape.n, shape.folded > 1 ? (int)shape.m : m + TM) : (int)shape.n;
        blocks = (keys + TN - 1) / TN;
    }

    template <class E> __device__ __forceinline__ E* in(E* from, const fuse_heads& strides, long long row) const
    {
        return from + (batch[0] * strides.batch[0] + batch[1] * strides.batch[1] + batch[2] * strides.batch[2] + row * strides.row);
    }
};
#endif

#if defined(HEAD_KEYS)
// Rows of queries, keys and values between memory, shared memory and the products of a warpgroup.

// Elements of a row that lie together in shared memory, for rows that are D long.
template <int D> struct fuse_head_row { static constexpr int WIDTH = D % 64 == 0 ? 64 : 32; };

// Copies rows of D elements to where products read them, by a warpgroup; what is not there is 0.
template <int ROWS, int D, class T>
static __device__ __forceinline__ void fuse_copy_rows(unsigned to, const T* from, long long stride, int rows, int columns)
{
    constexpr int WIDE = fuse_head_row<D>::WIDTH, CHUNKS = D / 8, LANES = CHUNKS > 16 ? 32 : CHUNKS > 8 ? 16 : CHUNKS > 4 ? 8 : 4, STEP = 128 / LANES;
    const int chunk = threadIdx.x % LANES, first = threadIdx.x % 128 / LANES;
    if (CHUNKS < LANES && chunk >= CHUNKS) return;
    to += chunk / (WIDE / 8) * (ROWS * WIDE * 2);
    from += first * stride + chunk * 8;
    int left = chunk * 8 < columns ? rows - first : 0;
    const auto at = [=](int row) { return to + row * (WIDE * 2) + fuse_place<WIDE>(row, chunk % (WIDE / 8)) * 16; };
    const unsigned start = at(first);
#pragma unroll 4
    for (int k = 0; k < (ROWS + STEP - 1) / STEP; ++k) {
        if (ROWS % STEP != 0 && first + k * STEP >= ROWS) break;
        // Rows that are a multiple of 8 apart have their places exchanged alike.
        fuse_copy(STEP % 8 == 0 ? start + k * STEP * (WIDE * 2) : at(first + k * STEP), from, left > 0);
        from += STEP * stride;
        left -= STEP;
    }
}

// The left operand of many products: 64 of ROWS rows, which are D long. STAYS: in registers, so that shared memory is free for others.
template <class T, int ROWS, int D, bool STAYS> struct fuse_left {
    static constexpr int WIDTH = fuse_head_row<D>::WIDTH;
    unsigned long long lie;
    unsigned of[STAYS ? D / 4 : 1];

    // Takes the rows of a group, once they are there.
    __device__ __forceinline__ void take(unsigned rows, int group)
    {
        const unsigned at = rows + group * (64 * WIDTH * 2);
        if (!STAYS) lie = fuse_lie<WIDTH>(at, 16);
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16;
#pragma unroll
        for (int d = 0; STAYS && d < D; d += 16) {
            const int place = fuse_place<WIDTH>(row, d % WIDTH / 8 + threadIdx.x % 32 / 16);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(of[d / 4]), "=r"(of[d / 4 + 1]), "=r"(of[d / 4 + 2]), "=r"(of[d / 4 + 3])
                         : "r"(at + d / WIDTH * (ROWS * WIDTH * 2) + row * (WIDTH * 2) + place * 16) : "memory");
        }
    }

    // s = A B^T for N rows B; a thread has two rows, eight apart, and of every eight columns two.
    template <int N> __device__ __forceinline__ void multiply(float (&s)[N], unsigned at_b) const
    {
        const unsigned long long b = fuse_lie<WIDTH>(at_b, 16);
        fuse_hold(s);
        fuse_products_begin();
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            const int block = d / WIDTH, within = d % WIDTH * 2;
            const unsigned long long right = b + (block * (2 * N * WIDTH * 2) + within) / 16;
            if constexpr (STAYS) fuse_wgmma_heads<T, 2 * N>::registers_along(s, of + d / 4, right, d > 0);
            else fuse_wgmma_heads<T, 2 * N>::shared(s, lie + (block * (ROWS * WIDTH * 2) + within) / 16, right, d > 0);
        }
        fuse_products_end();
    }
};

// o += P B for 64 rows P, which are in registers as the sums of the other product were, and N rows B, which are D long.
template <class T, int N, int D>
static __device__ __forceinline__ void fuse_multiply_across(float (&o)[D / 2], const unsigned (&p)[N / 4], unsigned at_b)
{
    constexpr int WIDTH = fuse_head_row<D>::WIDTH;
    const unsigned long long b = fuse_lie<WIDTH>(at_b, N * WIDTH * 2);
    fuse_hold(o);
    fuse_products_begin();
#pragma unroll
    for (int n = 0; n < N; n += 16) fuse_wgmma_heads<T, D>::registers(o, p + n / 4, b + n * WIDTH * 2 / 16, 1);
    fuse_products_end();
}

// Groups take turns at giving tensor cores work, by a barrier each.
template <int GROUPS> struct fuse_group_turns {
    static __device__ __forceinline__ void await(int group)
    {
        if (GROUPS > 1) asm volatile("bar.sync %0, %1;" :: "r"(2 + group), "n"(GROUPS * 128) : "memory");
    }

    static __device__ __forceinline__ void pass_to(int group)
    {
        asm volatile("bar.arrive %0, %1;" :: "r"(2 + group), "n"(GROUPS * 128) : "memory");
    }

    static __device__ __forceinline__ void pass(int group)
    {
#pragma unroll
        for (int k = 1; k < GROUPS; ++k) pass_to(group + k < GROUPS ? group + k : group + k - GROUPS);
    }

    // The first turn is the first group's.
    static __device__ __forceinline__ void open(int group)
    {
        for (int k = 0; k < group; ++k) pass_to(k);
    }
};

// Sums as the left operand of the next product.
template <class T, int N> static __device__ __forceinline__ void fuse_narrow(unsigned (&p)[N / 2], const float (&s)[N])
{
#pragma unroll
    for (int i = 0; i < N / 2; ++i) p[i] = fuse_element<T>::pair(s[2 * i], s[2 * i + 1]);
}

// Writes a row. Halves change hands among the four threads that have it, so that each has 16 bytes that lie together.
template <int N, class T> static __device__ __forceinline__ void fuse_put_row(T* row, int columns, const float (&o)[N], int r)
{
    const int lane = threadIdx.x % 4;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int j = 0; j < N / 4; ++j)
            if (j * 8 < columns) *(float2*)(row + j * 8 + 2 * lane) = make_float2(o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
    } else {
#pragma unroll
        for (int b = 0; b < N / 16; ++b) {
            unsigned w[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) w[k] = fuse_element<T>::pair(o[b * 16 + 4 * k + 2 * r], o[b * 16 + 4 * k + 2 * r + 1]);
#pragma unroll
            for (int stride = 1; stride < 4; stride *= 2)
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    if (k & stride) continue;
                    const bool upper = lane & stride;
                    const unsigned got = __shfl_xor_sync(~0u, upper ? w[k] : w[k + stride], stride);
                    (upper ? w[k] : w[k + stride]) = got;
                }
            if (b * 32 + lane * 8 < columns) *(uint4*)(row + b * 32 + lane * 8) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}
#endif

#if defined(HEAD_KEYS)
// What weights of attention are multiplied by on their way to the values, for the places that a thread has of a product: of every
// eight along a block two, in two lines eight apart. TURNED: a line is a key's, otherwise a query's.

// Weights that are kept, multiplied by `scale`, or 0. `keep` tells of a query and a key. It is a program of a weight as well.
template <class KEEP> struct fuse_drops {
    const KEEP& keep;
    float scale;

    __device__ __forceinline__ float operator()(const int (&batch)[3], float weight, int m, int n) const
    {
        return weight * (keep(batch, m, n) ? scale : 0.0f);
    }
};

template <class KEEP> static __device__ __forceinline__ fuse_drops<KEEP> fuse_dropped(const KEEP& keep, float scale)
{
    return {keep, scale};
}

// The same where that has been drawn before and is a bit in memory: words of 32 keys for one query after the other, then those of the
// keys behind, a head's after another's. There is an even number of queries.
struct fuse_kept {
    const unsigned* bits;
    const fuse_attention_shape& shape;
    float scale;

    static __device__ __forceinline__ int rows(const fuse_attention_shape& shape) { return ((int)shape.m + 1) / 2 * 2; }
    static __device__ __forceinline__ int words(const fuse_attention_shape& shape) { return ((int)shape.n + 31) / 32; }

    // The word of a query and a key; where there is none, another one.
    __device__ __forceinline__ const unsigned* at(const int (&batch)[3], int m, int n) const
    {
        const int head = (batch[0] * (int)shape.batch[1] + batch[1]) * (int)shape.batch[2] + batch[2];
        const long long word = (long long)head * words(shape) + min(n / 32, words(shape) - 1);
        return bits + (word * rows(shape) + min(m, rows(shape) - 2 + m % 2));
    }

    __device__ __forceinline__ float operator()(const int (&batch)[3], float weight, int m, int n) const
    {
        return weight * (*at(batch, m, n) >> n % 32 & 1 ? scale : 0.0f);
    }
};

template <class WEIGHT> struct fuse_is_kept { static constexpr bool IS = false; };
template <> struct fuse_is_kept<fuse_kept> { static constexpr bool IS = true; };

// Draws all of that, a word a thread: `draw_word` gives the one of a query and 32 keys.
template <class WORD> static __device__ __forceinline__ void fuse_draw_words(const WORD& draw_word, unsigned* to, const fuse_attention_shape& shape)
{
    const int rows = fuse_kept::rows(shape), words = fuse_kept::words(shape);
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x, word = at / rows;
    const int head = (int)(word / words), m = min((int)(at % rows), (int)shape.m - 1), n = (int)(word % words) * 32;
    if (head >= shape.heads) return;
    const int b2 = (int)shape.batch[2], b1 = (int)shape.batch[1], batch[3] = {head / b2 / b1, head / b2 % b1, head % b2};
    to[at] = draw_word(batch, m, n);
}

// `keep` is asked for four neighbours along a row, each with its number.
template <class KEEP> static __device__ __forceinline__ unsigned fuse_word_of(const KEEP& keep, const int (&batch)[3], int m, int n, int last)
{
    unsigned bits = 0;
#pragma unroll 1
    for (int j = 0; j < 32; j += 4)
#pragma unroll
        for (int k = 0; k < 4; ++k) bits |= (unsigned)(keep(batch, m, min(n + j + k, last), k) ? 1 : 0) << (j + k);
    return bits;
}

template <class KEEP> static __device__ __forceinline__ void fuse_draw_kept(const KEEP& keep, unsigned* to, const fuse_attention_shape& shape)
{
    fuse_draw_words([&](const int (&batch)[3], int m, int n) { return fuse_word_of(keep, batch, m, n, (int)shape.n - 1); }, to, shape);
}

// The same where a weight is kept if the draw at its place reaches something: neighbours along a row are words of one counter after the
// other, also those behind its end, which nobody asks for.
template <class DRAW, class PLACE, class KEEP>
static __device__ __forceinline__ void fuse_draw_kept(const DRAW& draw, unsigned least, const PLACE& place, const KEEP& keep, unsigned* to,
                                                      const fuse_attention_shape& shape)
{
    fuse_draw_words([&](const int (&batch)[3], int m, int n) {
        const long long first = place(batch, m, n);
        const bool is_run = DRAW::IS_RUN && (first & 3) == 0;
        return is_run ? draw.reaching(first, least) : fuse_word_of(keep, batch, m, n, (int)shape.n - 1);
    }, to, shape);
}

// A program of a weight is run place by place. What is looked up is settled when it is needed.
template <int N, bool TURNED, class WEIGHT> struct fuse_multipliers {
    const WEIGHT& weight;

    __device__ __forceinline__ void look(const int (&)[3], int, int, int, int) {}
    __device__ __forceinline__ void settle(int) {}

    __device__ __forceinline__ float apply(const int (&batch)[3], int, float x, int m, int n) const { return weight(batch, x, m, n); }
};

// What is kept is looked up before it is needed, one bit a place: four neighbours along a row share a draw, so each of the threads
// that have them asks for all four of some rows, and they exchange what they know.
template <int N, bool TURNED, class KEEP> struct fuse_multipliers<N, TURNED, fuse_drops<KEEP>> {
    static constexpr int SHARERS = TURNED ? 4 : 2, WORDS = (N + 31) / 32;
    static_assert(N % 4 == 0, "of every eight two, in two lines");
    const fuse_drops<KEEP>& drops;
    unsigned kept[SHARERS][WORDS];

    __device__ __forceinline__ void settle(int) {}

    // From query m and key n on, which are the first that the thread has; the last ones that are.
    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int last_m, int last_n)
    {
        const int lane = threadIdx.x % 32, own = TURNED ? lane / 4 % 4 : lane % 2;
        const int row = m + (TURNED ? own % 2 : own * 8), first = TURNED ? n - own + own / 2 * 8 : n - own * 2;
#pragma unroll
        for (int word = 0; word < WORDS; ++word) {
            unsigned bits = 0;
#pragma unroll 1
            for (int j = 0; j < min(8, N / 4 - 8 * word); ++j) {
                const int along = (word * 8 + j) * 8, query = min(TURNED ? row + along : row, last_m), key = TURNED ? first : first + along;
#pragma unroll
                for (int k = 0; k < 4; ++k) bits |= (unsigned)(drops.keep(batch, query, min(key + k, last_n)) ? 1 : 0) << (4 * j + k);
            }
#pragma unroll
            for (int of = 0; of < SHARERS; ++of) {
                const int from = TURNED ? (lane & ~12) | of << 2 : (lane & ~1) | of;
                kept[of][word] = __shfl_sync(~0u, bits, from) >> (TURNED ? own : 2 * own);
            }
        }
    }

    __device__ __forceinline__ float apply(const int (&)[3], int i, float x, int, int) const
    {
        const unsigned bits = kept[TURNED ? i % 4 : i / 2 % 2][i / 32];
        return x * (bits >> (i / 4 % 8 * 4 + (TURNED ? 0 : i % 2)) & 1 ? drops.scale : 0.0f);
    }
};

// Of two queries a thread has every word of its keys.
template <int N> struct fuse_multipliers<N, false, fuse_kept> {
    static constexpr int WORDS = (N + 15) / 16;
    const fuse_kept& kept;
    unsigned words[2][WORDS];

    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int, int)
    {
        const int first = n - threadIdx.x % 4 * 2;
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int k = 0; k < WORDS; ++k) words[r][k] = *kept.at(batch, m + 8 * r, first + 32 * k) >> (N < 16 ? first % 32 : 0);
    }
    __device__ __forceinline__ void settle(int) {}

    __device__ __forceinline__ float apply(const int (&)[3], int i, float x, int, int) const
    {
        const unsigned bits = words[i / 2 % 2][i / 16] >> threadIdx.x % 4 * 2;
        return x * (bits >> (i / 4 % 4 * 8 + i % 2) & 1 ? kept.scale : 0.0f);
    }
};

// Of two keys eight apart a thread has a word of every query, of which two bits are theirs.
template <int N> struct fuse_multipliers<N, true, fuse_kept> {
    static_assert(N <= 32, "a word of bits");
    const fuse_kept& kept;
    uint2 words[N / 4];
    unsigned own;

    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int, int)
    {
#pragma unroll
        for (int j = 0; j < N / 4; ++j) words[j] = *(const uint2*)kept.at(batch, m + 8 * j, n);
    }

    // From key n on.
    __device__ __forceinline__ void settle(int n)
    {
        own = 0;
#pragma unroll
        for (int j = 0; j < N / 4; ++j) {
            const int to = j % 4 * 2 + j / 4 * 16;
            own |= (words[j].x >> n % 32 & 0x101u) << to | (words[j].y >> n % 32 & 0x101u) << (to + 1);
        }
    }

    __device__ __forceinline__ float apply(const int (&)[3], int i, float x, int, int) const
    {
        const int bit = i / 4 % 4 * 2 + i % 2 + i / 16 * 16 + i / 2 % 2 * 8;
        return x * (own >> bit & 1 ? kept.scale : 0.0f);
    }
};

// One of two, where they are alike.
template <class A> static __device__ __forceinline__ const A& fuse_first_if_same(const A& first, const A&) { return first; }
template <class A, class B> static __device__ __forceinline__ const B& fuse_first_if_same(const A&, const B& other) { return other; }
#endif

#if defined(HEAD_ROWS)
// Products of single warps (mma.sync) over rows that lie in shared memory as fuse_copy_rows leaves them.

// 16 by 16 elements of rows, R of them and each W long: two of a thread in a register.
template <int R, int W, bool TURNED> static __device__ __forceinline__ void fuse_square(unsigned (&to)[4], unsigned rows, int row, int column)
{
    constexpr int WIDE = fuse_head_row<W>::WIDTH;
    // The row that a thread asks for, and which half of the columns.
    const int lane = threadIdx.x % 32, own = row + lane % 16;
    const unsigned at = rows + column / WIDE * (R * WIDE * 2) + own * (WIDE * 2) + fuse_place<WIDE>(own, column % WIDE / 8 + lane / 16) * 16;
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

// The left operand of a warp's products: 16 * TILES of R rows, which are D long. STAYS: in registers.
template <class T, int R, int D, int TILES, bool STAYS> struct fuse_warp_left {
    unsigned rows;
    int row;
    unsigned of[STAYS ? TILES * D / 16 : 1][4];

    // From a row on, once they are there.
    __device__ __forceinline__ void take(unsigned all, int first)
    {
        rows = all;
        row = first;
#pragma unroll
        for (int i = 0; STAYS && i < TILES * D / 16; ++i) fuse_square<R, D, false>(of[i], rows, row + i / (D / 16) * 16, i % (D / 16) * 16);
    }

    // s = A B^T for N of so many rows B, from one on.
    template <int ROWS, int N> __device__ __forceinline__ void multiply(float (&s)[TILES][N], unsigned at_b, int first) const
    {
#pragma unroll
        for (int i = 0; i < TILES * N; ++i) s[i / N][i % N] = 0.0f;
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            unsigned left[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                if (!STAYS) fuse_square<R, D, false>(left[t], rows, row + 16 * t, d);
#pragma unroll
                for (int k = 0; STAYS && k < 4; ++k) left[t][k] = of[STAYS ? t * (D / 16) + d / 16 : 0][k];
            }
#pragma unroll
            for (int n = 0; n < 2 * N; n += 16) {
                unsigned right[4];
                fuse_square<ROWS, D, false>(right, at_b, first + n, d);
#pragma unroll
                for (int t = 0; t < TILES; ++t)
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        float* const sums = s[t] + n / 2 + 4 * half;
                        fuse_multiply_halves(T(), sums, sums + 2, left[t], right[half], right[half + 2]);
                    }
            }
        }
    }
};

// o += P B for 16 * TILES rows P, which are in registers as the sums of the other product were, and rows B, ROWS of them and each D long,
// from one on. Of their columns it is those from `column` on, as far as there are.
template <class T, int ROWS, int D, int TILES, int N, int O>
static __device__ __forceinline__ void fuse_add_across(float (&o)[TILES][O], const unsigned (&p)[TILES][N], unsigned at_b, int first, int column)
{
#pragma unroll
    for (int n = 0; n < 4 * N; n += 16) {
        unsigned left[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) left[i / 4][i % 4] = p[i / 4][n / 4 + i % 4];
#pragma unroll
        for (int d = 0; d < 2 * O; d += 16) {
            if (2 * O < D && column + d >= D) break;
            unsigned right[4];
            fuse_square<ROWS, D, true>(right, at_b, first + n, column + d);
#pragma unroll
            for (int t = 0; t < TILES; ++t)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float* const sums = o[t] + d / 2 + 4 * half;
                    fuse_multiply_halves(T(), sums, sums + 2, left[t], right[2 * half], right[2 * half + 1]);
                }
        }
    }
}
#endif

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

#if defined(HEAD_KEYS)
// Products of queries and keys that a thread has, and where they are: of every eight along the block two, in two lines eight apart.
// TURNED: a line is a key's, otherwise a query's.
template <int N, bool CAUSAL, bool PLAIN, bool PLAIN_WEIGHT, bool TURNED> struct fuse_back_scores {
    const fuse_attention_shape& shape;
    const int (&batch)[3];
    // The logarithms of all rows, see `fuse_put_log`.
    const float* all_logs;
    int m, n;

    __device__ __forceinline__ int query(int i) const { return m + (TURNED ? i / 4 * 8 + i % 2 : i / 2 % 2 * 8); }
    __device__ __forceinline__ int key(int i) const { return n + (TURNED ? i / 2 % 2 * 8 : i / 4 * 8 + i % 2); }

    // A program of a score or weight; places that are none read like the last one that is.
    template <class PROGRAM, class... MORE>
    __device__ __forceinline__ float run(const PROGRAM& program, int i, float x, MORE... more) const
    {
        return program(batch, x, more..., min(query(i), (int)shape.m - 1), min(key(i), (int)shape.n - 1));
    }

    // The gradient of a product from that of its score. A place that is none has none, even where scores are steep without end.
    template <class SCORE> __device__ __forceinline__ float to_product(const SCORE& of_score, int i, float d, float product) const
    {
        return query(i) < (int)shape.m && key(i) < (int)shape.n ? run(of_score, i, d, product) : 0.0f;
    }

    // What weights and their gradients are multiplied by, looked up and used.
    template <class MULTIPLIERS> __device__ __forceinline__ void look(MULTIPLIERS& by) const
    {
        if (!PLAIN_WEIGHT) by.look(batch, m, n, (int)shape.m - 1, (int)shape.n - 1);
    }
    template <class MULTIPLIERS> __device__ __forceinline__ void settle(MULTIPLIERS& by) const
    {
        if (!PLAIN_WEIGHT) by.settle(n);
    }
    template <class MULTIPLIERS> __device__ __forceinline__ float multiply(const MULTIPLIERS& by, int i, float x) const
    {
        return by.apply(batch, i, x, min(query(i), (int)shape.m - 1), min(key(i), (int)shape.n - 1));
    }

    // Products become weights. EDGE: there may be places that are none, or keys behind a query. `logs`: of place i.
    template <bool EDGE, class LOGS, class SCORE>
    __device__ __forceinline__ void to_weights(float (&s)[N], float (&products)[N], float factor, const LOGS& logs, const SCORE& score) const
    {
        bool is_near = true;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            products[i] = s[i];
            if (!PLAIN) s[i] = run(score, i, s[i]);
            // The difference comes first, for scores may be as large as floats are.
            s[i] = __fmaf_rn(s[i], factor, -logs(i));
            is_near &= fuse_is_near(logs(i));
        }
        if (__any_sync(~0u, !is_near)) {
            const float* const rest = all_logs + shape.heads * shape.m + fuse_rows_before(batch, shape);
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (!fuse_is_near(logs(i))) s[i] -= rest[min(query(i), (int)shape.m - 1)];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            // exp(x) = 2^(x log2(e))
            s[i] = fuse_exp2(s[i] * 1.44269504f);
            if (EDGE && (key(i) >= (int)shape.n || query(i) >= (int)shape.m || (CAUSAL && key(i) > query(i)))) s[i] = 0.0f;
        }
    }

    // What values are multiplied by.
    template <class T, class MULTIPLIERS> __device__ __forceinline__ void narrow(unsigned (&w)[N / 2], const float (&p)[N], const MULTIPLIERS& by) const
    {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float first = PLAIN_WEIGHT ? p[i] : multiply(by, i, p[i]);
            w[i / 2] = fuse_element<T>::pair(first, PLAIN_WEIGHT ? p[i + 1] : multiply(by, i + 1, p[i + 1]));
        }
    }

    // Weights become the gradients of products, but for the factor; `of`: the rowsum(O dO) of place i.
    template <class OF, class MULTIPLIERS, class SCORE>
    __device__ __forceinline__ void to_gradients(float (&p)[N], const float (&d)[N], const float (&products)[N], const OF& of,
                                                 const MULTIPLIERS& by, const SCORE& score) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            p[i] *= (PLAIN_WEIGHT ? d[i] : multiply(by, i, d[i])) - of(i);
            if (!PLAIN) p[i] = to_product(score, i, p[i], products[i]);
        }
    }
};

// The sum of O dO along a row, by the four threads that have it.
template <int DV, class T> static __device__ __forceinline__ float fuse_inner(const T* o, const T* d_o, int columns)
{
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < DV; c += 32) {
        const int at = c + threadIdx.x % 4 * 8;
        if (at >= columns) break;
        const uint4 x = *(const uint4*)(o + at), y = *(const uint4*)(d_o + at);
#pragma unroll
        for (int k = 0; k < 8; ++k) sum = __fmaf_rn(fuse_to_compute(((const T*)&x)[k]), fuse_to_compute(((const T*)&y)[k]), sum);
    }
#pragma unroll
    for (int stride = 1; stride < 4; stride *= 2) sum += __shfl_xor_sync(~0u, sum, stride);
    return sum;
}

// Copies a number of each of the TM rows, by a warpgroup: by those of its threads that come behind so many.
template <int TM> static __device__ __forceinline__ void fuse_copy_numbers(unsigned to, const float* from, int rows, int threads_before)
{
#pragma unroll
    for (int row = threadIdx.x - threads_before; row < TM; row += 128)
        if (row >= 0) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                                   :: "r"(to + row * 4), "l"(from + (row < rows ? row : 0)), "r"(row < rows ? 4 : 0) : "memory");
}
#endif

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

__device__ __forceinline__ float fuse_exp(float x) { return expf(x); }
__device__ __forceinline__ double fuse_exp(double x) { return exp(x); }

#if defined(KERNEL_k0_matmul)
// k0_matmul: map[q.0, q.1, k.1] product4 = product
//   src/lib.rs:3  matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k0_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product4_ptr,
    const fuse_strides<RANK> product4_strides,
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
        float product4_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            product4_out[v] = product2;
        }
        fuse_write<STEP_0>(product4_ptr + fuse_offset<STEP_0>(at, product4_strides), product4_out, product4_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k0_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product4_ptr,
    const fuse_strides<RANK> product4_strides,
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
                    float product4_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        product4_out[v] = product2;
                    }
                    fuse_write<STEP_0>(product4_ptr + fuse_offset<STEP_0>(at, product4_strides), product4_out, product4_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k0_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product4_ptr,
    const fuse_strides<RANK> product4_strides,
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
            float product4_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                product4_out[v] = product2;
            }
            fuse_write<STEP_0>(product4_ptr + fuse_offset<STEP_0>(at, product4_strides), product4_out, product4_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k1_mul_max_sub_exp)
// k1_mul_max_sub_exp: row[q.0, q.1 | k.1] t3 = f32(mul(product4, 0.125)); t6 = exp(sub(t3, max(t3))); t9 = bf16(div(t6, sum(t6))); cast15 = t9; cast24 = bf16(mul(f32(t9), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))
//   src/lib.rs:4  mul(..)
//   src/lib.rs:5  softmax(..)
//   src/lib.rs:6  dropout(..)
#if defined(ITEMS)
#define THREADS (TEAM == 32 ? 128 : TEAM)
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_max_sub_exp(
    const fuse_bf16* product4_ptr,
    const fuse_strides<RANK + INNER_RANK> product4_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    fuse_bf16* cast24_ptr,
    const fuse_strides<RANK + INNER_RANK> cast24_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* product4_row = product4_ptr + fuse_offset(at, product4_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        fuse_bf16* cast24_row = cast24_ptr + fuse_offset(at, cast24_strides);
        float cast_kept[ITEMS][VEC];
        constexpr int GROUPS4 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS4> max2_lanes;
        fuse_pack<fuse_bf16, VEC> product4_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(product4_in[i], product4_row + fuse_along<RANK, STEP_0>(e, inner, product4_strides), product4_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product4 = fuse_to_compute(product4_in[i][v]);
                const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                const float cast = mul;
                cast_kept[i][v] = cast;
                max2_lanes.add(i, v, fuse_largest<float>::of(cast, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { max2_lanes.fold(i); }
        }
        const float max2 = fuse_largest<float>::value(max2_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        float exp3_kept[ITEMS][VEC];
        constexpr int GROUPS7 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS7> sum_lanes;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float cast = cast_kept[i][v];
                const float sub = cast - max2;
                const float exp3 = fuse_exp(sub);
                exp3_kept[i][v] = exp3;
                sum_lanes.add(i, v, fuse_sum<float>::of(exp3, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const float sum = fuse_sum<float>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            float cast15_out[VEC];
            float cast24_out[VEC];
            fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float exp3 = exp3_kept[i][v];
                const float div = exp3 / sum;
                const float cast2 = fuse_rounded<fuse_bf16>(div);
                const float cast3 = cast2;
                const long long position = position_row + fuse_along<RANK, STEP_1>(e + v, inner, position_strides);
                const bool ge = draw0.reaches(position, v, 0x19999a00u);
                const float cast4 = fuse_cast<float>(ge);
                const float mul2 = cast4 * 1.1111112f;
                const float mul3 = cast3 * mul2;
                const float cast5 = mul3;
                cast15_out[v] = cast2;
                cast24_out[v] = cast5;
            }
            fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
            fuse_write<STEP_3>(cast24_row + fuse_along<RANK, STEP_3>(e, inner, cast24_strides), cast24_out, cast24_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#elif defined(RESIDENT)
#define THREADS TEAM
#define LEGS (16384 / fuse_leg)
#define ITEMS (fuse_leg / (TEAM * VEC))
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_max_sub_exp(
    const fuse_bf16* product4_ptr,
    const fuse_strides<RANK + INNER_RANK> product4_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    fuse_bf16* cast24_ptr,
    const fuse_strides<RANK + INNER_RANK> cast24_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    extern __shared__ uint4 fuse_shared[];
    fuse_room<fuse_bf16> product4_room(fuse_shared);
    void* const lanes_room = product4_room.end(len);
    const int blocks = (int)((len + 16383) / 16384);
    fuse_arrivals<TEAM, VEC> arrivals((int)len);
    if (blockIdx.x < outer.points) {
        const fuse_at<RANK> next = fuse_unravel((IDX)blockIdx.x, outer);
        product4_room.aim(product4_ptr + fuse_offset(next, product4_strides));
        arrivals.send_all(product4_room);
    }
    for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* product4_row = product4_ptr + fuse_offset(at, product4_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        fuse_bf16* cast24_row = cast24_ptr + fuse_offset(at, cast24_strides);
        product4_room.open();
        arrivals.open();
        const bool more = row + (IDX)gridDim.x < (IDX)outer.points;
        if (more) {
            const fuse_at<RANK> next = fuse_unravel(row + (IDX)gridDim.x, outer);
            product4_room.aim(product4_ptr + fuse_offset(next, product4_strides));
        }
        fuse_pack<fuse_bf16, VEC> product4_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];
        constexpr int GROUPS4 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_few_blocks<4, fuse_largest<float>, TEAM, VEC, GROUPS4> max2_blocks(lanes_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
            fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS4> max2_lanes;
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                arrivals.await_leg((int)base, more ? (int)base / fuse_leg : 0);
                fuse_pack<fuse_bf16, VEC> (&product4_in)[ITEMS] = product4_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(product4_in[i], product4_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        max2_lanes.add(i, v, fuse_largest<float>::of(cast, e + v));
                    }
                }
                arrivals.release((int)base, more, product4_room);
            }
            max2_blocks.put(block, max2_lanes);
        }
        arrivals.flush(product4_room);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS4> max2_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : GROUPS4;
                fuse_pack<fuse_bf16, VEC> product4_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(product4_in[i], product4_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        max2_lanes.add(i, v, fuse_largest<float>::of(cast, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                arrivals.await_leg((int)base, more ? KEPT * LEGS : 0);
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += GROUPS4 * TEAM * VEC) step(some, fuse_bool<false>());
            }
            max2_blocks.put((int)(block / 16384), max2_lanes);
        }
        const float max2 = fuse_largest<float>::value(max2_blocks.total(blocks));
        constexpr int GROUPS7 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_few_blocks<7, fuse_sum<float>, TEAM, VEC, GROUPS7> sum_blocks(lanes_room);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS7> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : GROUPS7;
                fuse_pack<fuse_bf16, VEC> product4_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(product4_in[i], product4_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        sum_lanes.add(i, v, fuse_sum<float>::of(exp3, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += GROUPS7 * TEAM * VEC) step(some, fuse_bool<false>());
            }
            sum_blocks.put((int)(block / 16384), sum_lanes);
        }
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS7> sum_lanes;
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                fuse_pack<fuse_bf16, VEC> (&product4_in)[ITEMS] = product4_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        sum_lanes.add(i, v, fuse_sum<float>::of(exp3, e + v));
                    }
                }
            }
            sum_blocks.put(block, sum_lanes);
        }
        const float sum = fuse_sum<float>::value(sum_blocks.total(blocks));
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : ITEMS;
                fuse_pack<fuse_bf16, VEC> product4_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(product4_in[i], product4_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast15_out[VEC];
                    float cast24_out[VEC];
                    fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        const float div = exp3 / sum;
                        const float cast2 = fuse_rounded<fuse_bf16>(div);
                        const float cast3 = cast2;
                        const long long position = position_row + fuse_along<RANK, STEP_1>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast4 = fuse_cast<float>(ge);
                        const float mul2 = cast4 * 1.1111112f;
                        const float mul3 = cast3 * mul2;
                        const float cast5 = mul3;
                        cast15_out[v] = cast2;
                        cast24_out[v] = cast5;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                    fuse_write<STEP_3>(cast24_row + fuse_along<RANK, STEP_3>(e, inner, cast24_strides), cast24_out, cast24_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += ITEMS * TEAM * VEC) step(some, fuse_bool<false>());
                arrivals.release((int)base, more, product4_room);
            }
        }
        arrivals.flush(product4_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                fuse_pack<fuse_bf16, VEC> (&product4_in)[ITEMS] = product4_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast15_out[VEC];
                    float cast24_out[VEC];
                    fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        const float div = exp3 / sum;
                        const float cast2 = fuse_rounded<fuse_bf16>(div);
                        const float cast3 = cast2;
                        const long long position = position_row + fuse_along<RANK, STEP_1>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast4 = fuse_cast<float>(ge);
                        const float mul2 = cast4 * 1.1111112f;
                        const float mul3 = cast3 * mul2;
                        const float cast5 = mul3;
                        cast15_out[v] = cast2;
                        cast24_out[v] = cast5;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                    fuse_write<STEP_3>(cast24_row + fuse_along<RANK, STEP_3>(e, inner, cast24_strides), cast24_out, cast24_strides.axis[RANK + INNER_RANK - 1]);
                }
            }
        }
    }
}
#else
#define THREADS TEAM
#define ITEMS (TEAM == 1024 ? 16 : 4)
extern "C" __global__ void __launch_bounds__(THREADS) k1_mul_max_sub_exp(
    const fuse_bf16* product4_ptr,
    const fuse_strides<RANK + INNER_RANK> product4_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    fuse_bf16* cast24_ptr,
    const fuse_strides<RANK + INNER_RANK> cast24_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* product4_row = product4_ptr + fuse_offset(at, product4_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        fuse_bf16* cast24_row = cast24_ptr + fuse_offset(at, cast24_strides);
        constexpr int GROUPS4 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<4, fuse_largest<float>, TEAM, VEC, GROUPS4> max2_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS4> max2_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<fuse_bf16, VEC> product4_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(product4_in[i], product4_row + fuse_along<RANK, STEP_0>(e, inner, product4_strides), product4_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        max2_lanes.add(i, v, fuse_largest<float>::of(cast, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            max2_blocks.push(max2_lanes);
        }
        const float max2 = fuse_largest<float>::value(max2_blocks.total());
        constexpr int GROUPS7 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<7, fuse_sum<float>, TEAM, VEC, GROUPS7> sum_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS7> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<fuse_bf16, VEC> product4_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(product4_in[i], product4_row + fuse_along<RANK, STEP_0>(e, inner, product4_strides), product4_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        sum_lanes.add(i, v, fuse_sum<float>::of(exp3, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            sum_blocks.push(sum_lanes);
        }
        const float sum = fuse_sum<float>::value(sum_blocks.total());
        for (IDX block = 0; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<fuse_bf16, VEC> product4_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(product4_in[i], product4_row + fuse_along<RANK, STEP_0>(e, inner, product4_strides), product4_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast15_out[VEC];
                    float cast24_out[VEC];
                    fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product4 = fuse_to_compute(product4_in[i][v]);
                        const float mul = fuse_rounded<fuse_bf16>(product4 * 0.125f);
                        const float cast = mul;
                        const float sub = cast - max2;
                        const float exp3 = fuse_exp(sub);
                        const float div = exp3 / sum;
                        const float cast2 = fuse_rounded<fuse_bf16>(div);
                        const float cast3 = cast2;
                        const long long position = position_row + fuse_along<RANK, STEP_1>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast4 = fuse_cast<float>(ge);
                        const float mul2 = cast4 * 1.1111112f;
                        const float mul3 = cast3 * mul2;
                        const float cast5 = mul3;
                        cast15_out[v] = cast2;
                        cast24_out[v] = cast5;
                    }
                    fuse_write<STEP_2>(cast15_row + fuse_along<RANK, STEP_2>(e, inner, cast15_strides), cast15_out, cast15_strides.axis[RANK + INNER_RANK - 1]);
                    fuse_write<STEP_3>(cast24_row + fuse_along<RANK, STEP_3>(e, inner, cast24_strides), cast24_out, cast24_strides.axis[RANK + INNER_RANK - 1]);
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

#if defined(KERNEL_k2_matmul)
// k2_matmul: map[q.0, q.1, v.2] product25 = product
//   src/lib.rs:7  matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k2_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product25_ptr,
    const fuse_strides<RANK> product25_strides,
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
        float product25_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            product25_out[v] = product2;
        }
        fuse_write<STEP_0>(product25_ptr + fuse_offset<STEP_0>(at, product25_strides), product25_out, product25_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k2_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product25_ptr,
    const fuse_strides<RANK> product25_strides,
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
                    float product25_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        product25_out[v] = product2;
                    }
                    fuse_write<STEP_0>(product25_ptr + fuse_offset<STEP_0>(at, product25_strides), product25_out, product25_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k2_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product25_ptr,
    const fuse_strides<RANK> product25_strides,
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
            float product25_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                product25_out[v] = product2;
            }
            fuse_write<STEP_0>(product25_ptr + fuse_offset<STEP_0>(at, product25_strides), product25_out, product25_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k3_matmul)
// k3_matmul: map[q.0, k.1, v.2] v_grad = bf16(product)
//   src/lib.rs:7  gradient of matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k3_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* v_grad_ptr,
    const fuse_strides<RANK> v_grad_strides,
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
        float v_grad_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            const float v_grad2 = product2;
            v_grad_out[v] = v_grad2;
        }
        fuse_write<STEP_0>(v_grad_ptr + fuse_offset<STEP_0>(at, v_grad_strides), v_grad_out, v_grad_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k3_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* v_grad_ptr,
    const fuse_strides<RANK> v_grad_strides,
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
                    float v_grad_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        const float v_grad2 = product2;
                        v_grad_out[v] = v_grad2;
                    }
                    fuse_write<STEP_0>(v_grad_ptr + fuse_offset<STEP_0>(at, v_grad_strides), v_grad_out, v_grad_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k3_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* v_grad_ptr,
    const fuse_strides<RANK> v_grad_strides,
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
            float v_grad_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                const float v_grad2 = product2;
                v_grad_out[v] = v_grad2;
            }
            fuse_write<STEP_0>(v_grad_ptr + fuse_offset<STEP_0>(at, v_grad_strides), v_grad_out, v_grad_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k4_matmul)
// k4_matmul: map[q.0, q.1, k.1] cast29 = bf16(product)
//   src/lib.rs:7  gradient of matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k4_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast29_ptr,
    const fuse_strides<RANK> cast29_strides,
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
        float cast29_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            const float cast = product2;
            cast29_out[v] = cast;
        }
        fuse_write<STEP_0>(cast29_ptr + fuse_offset<STEP_0>(at, cast29_strides), cast29_out, cast29_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k4_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast29_ptr,
    const fuse_strides<RANK> cast29_strides,
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
                    float cast29_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        const float cast = product2;
                        cast29_out[v] = cast;
                    }
                    fuse_write<STEP_0>(cast29_ptr + fuse_offset<STEP_0>(at, cast29_strides), cast29_out, cast29_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k4_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast29_ptr,
    const fuse_strides<RANK> cast29_strides,
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
            float cast29_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                const float cast = product2;
                cast29_out[v] = cast;
            }
            fuse_write<STEP_0>(cast29_ptr + fuse_offset<STEP_0>(at, cast29_strides), cast29_out, cast29_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k5_random_ge_mul_sum)
// k5_random_ge_mul_sum: row[q.0, q.1 | k.1] t1 = f32(cast15); t13 = f32(bf16(mul(f32(cast29), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))); cast46 = bf16(mul(f32(bf16(mul(t1, sub(t13, sum(mul(t13, t1)))))), 0.125))
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:6  gradient of dropout(..)
//   src/lib.rs:5  gradient of softmax(..)
//   src/lib.rs:4  gradient of mul(..)
#if defined(ITEMS)
#define THREADS (TEAM == 32 ? 128 : TEAM)
extern "C" __global__ void __launch_bounds__(THREADS) k5_random_ge_mul_sum(
    const fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const fuse_bf16* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast46_ptr,
    const fuse_strides<RANK + INNER_RANK> cast46_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const fuse_bf16* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast46_row = cast46_ptr + fuse_offset(at, cast46_strides);
        float cast5_kept[ITEMS][VEC];
        constexpr int GROUPS15 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS15> sum_lanes;
        fuse_pack<fuse_bf16, VEC> cast15_in[ITEMS];
        fuse_pack<fuse_bf16, VEC> cast29_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(cast15_in[i], cast15_row + fuse_along<RANK, STEP_0>(e, inner, cast15_strides), cast15_strides.axis[RANK + INNER_RANK - 1]);
                fuse_read<STEP_1>(cast29_in[i], cast29_row + fuse_along<RANK, STEP_1>(e, inner, cast29_strides), cast29_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float cast15 = fuse_to_compute(cast15_in[i][v]);
                const float cast = cast15;
                const float cast29 = fuse_to_compute(cast29_in[i][v]);
                const float cast2 = cast29;
                const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                const bool ge = draw0.reaches(position, v, 0x19999a00u);
                const float cast3 = fuse_cast<float>(ge);
                const float mul = cast3 * 1.1111112f;
                const float mul2 = cast2 * mul;
                const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                const float cast5 = cast4;
                const float mul3 = cast5 * cast;
                cast5_kept[i][v] = cast5;
                sum_lanes.add(i, v, fuse_sum<float>::of(mul3, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { sum_lanes.fold(i); }
        }
        const float sum = fuse_sum<float>::value(sum_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
            float cast46_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float cast5 = cast5_kept[i][v];
                const float cast15 = fuse_to_compute(cast15_in[i][v]);
                const float cast = cast15;
                const float sub = cast5 - sum;
                const float mul4 = cast * sub;
                const float cast6 = fuse_rounded<fuse_bf16>(mul4);
                const float cast7 = cast6;
                const float mul5 = cast7 * 0.125f;
                const float cast8 = mul5;
                cast46_out[v] = cast8;
            }
            fuse_write<STEP_3>(cast46_row + fuse_along<RANK, STEP_3>(e, inner, cast46_strides), cast46_out, cast46_strides.axis[RANK + INNER_RANK - 1]);
        }
    }
}
#elif defined(RESIDENT)
#define THREADS TEAM
#define LEGS (16384 / fuse_leg)
#define ITEMS (fuse_leg / (TEAM * VEC))
extern "C" __global__ void __launch_bounds__(THREADS) k5_random_ge_mul_sum(
    const fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const fuse_bf16* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast46_ptr,
    const fuse_strides<RANK + INNER_RANK> cast46_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    extern __shared__ uint4 fuse_shared[];
    fuse_room<fuse_bf16> cast15_room(fuse_shared);
    fuse_room<fuse_bf16> cast29_room(cast15_room.end(len));
    void* const lanes_room = cast29_room.end(len);
    const int blocks = (int)((len + 16383) / 16384);
    fuse_arrivals<TEAM, VEC> arrivals((int)len);
    if (blockIdx.x < outer.points) {
        const fuse_at<RANK> next = fuse_unravel((IDX)blockIdx.x, outer);
        cast15_room.aim(cast15_ptr + fuse_offset(next, cast15_strides));
        cast29_room.aim(cast29_ptr + fuse_offset(next, cast29_strides));
        arrivals.send_all(cast15_room, cast29_room);
    }
    for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const fuse_bf16* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast46_row = cast46_ptr + fuse_offset(at, cast46_strides);
        cast15_room.open();
        cast29_room.open();
        arrivals.open();
        const bool more = row + (IDX)gridDim.x < (IDX)outer.points;
        if (more) {
            const fuse_at<RANK> next = fuse_unravel(row + (IDX)gridDim.x, outer);
            cast15_room.aim(cast15_ptr + fuse_offset(next, cast15_strides));
            cast29_room.aim(cast29_ptr + fuse_offset(next, cast29_strides));
        }
        fuse_pack<fuse_bf16, VEC> cast15_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];
        fuse_pack<fuse_bf16, VEC> cast29_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];
        constexpr int GROUPS15 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_few_blocks<15, fuse_sum<float>, TEAM, VEC, GROUPS15> sum_blocks(lanes_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS15> sum_lanes;
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                arrivals.await_leg((int)base, more ? (int)base / fuse_leg : 0);
                fuse_pack<fuse_bf16, VEC> (&cast15_in)[ITEMS] = cast15_kept[block * LEGS + leg];
                fuse_pack<fuse_bf16, VEC> (&cast29_in)[ITEMS] = cast29_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(cast15_in[i], cast15_room.row() + e, 1);
                        fuse_read<1>(cast29_in[i], cast29_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float mul3 = cast5 * cast;
                        sum_lanes.add(i, v, fuse_sum<float>::of(mul3, e + v));
                    }
                }
                arrivals.release((int)base, more, cast15_room, cast29_room);
            }
            sum_blocks.put(block, sum_lanes);
        }
        arrivals.flush(cast15_room, cast29_room);
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS15> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : GROUPS15;
                fuse_pack<fuse_bf16, VEC> cast15_in[SOME];
                fuse_pack<fuse_bf16, VEC> cast29_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(cast15_in[i], cast15_room.row() + e, 1);
                        fuse_read<1>(cast29_in[i], cast29_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float mul3 = cast5 * cast;
                        sum_lanes.add(i, v, fuse_sum<float>::of(mul3, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                arrivals.await_leg((int)base, more ? KEPT * LEGS : 0);
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += GROUPS15 * TEAM * VEC) step(some, fuse_bool<false>());
            }
            sum_blocks.put((int)(block / 16384), sum_lanes);
        }
        const float sum = fuse_sum<float>::value(sum_blocks.total(blocks));
        for (IDX block = KEPT * 16384; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                constexpr int SOME = WHOLE ? ITEMS : ITEMS;
                fuse_pack<fuse_bf16, VEC> cast15_in[SOME];
                fuse_pack<fuse_bf16, VEC> cast29_in[SOME];
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<1>(cast15_in[i], cast15_room.row() + e, 1);
                        fuse_read<1>(cast29_in[i], cast29_room.row() + e, 1);
                    }
                }
#pragma unroll
                for (int i = 0; i < SOME; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast46_out[VEC];
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float sub = cast5 - sum;
                        const float mul4 = cast * sub;
                        const float cast6 = fuse_rounded<fuse_bf16>(mul4);
                        const float cast7 = cast6;
                        const float mul5 = cast7 * 0.125f;
                        const float cast8 = mul5;
                        cast46_out[v] = cast8;
                    }
                    fuse_write<STEP_3>(cast46_row + fuse_along<RANK, STEP_3>(e, inner, cast46_strides), cast46_out, cast46_strides.axis[RANK + INNER_RANK - 1]);
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg) {
                const IDX end = base + ITEMS * TEAM * VEC;
                if (end <= len) step(base, fuse_bool<true>());
#pragma unroll 1
                for (IDX some = base; end > len && some < len; some += ITEMS * TEAM * VEC) step(some, fuse_bool<false>());
                arrivals.release((int)base, more, cast15_room, cast29_room);
            }
        }
        arrivals.flush(cast15_room, cast29_room);
#pragma unroll
        for (int block = 0; block < KEPT; ++block) {
#pragma unroll
            for (int leg = 0; leg < LEGS; ++leg) {
                constexpr bool WHOLE = true;
                const IDX base = block * 16384 + leg * fuse_leg;
                fuse_pack<fuse_bf16, VEC> (&cast15_in)[ITEMS] = cast15_kept[block * LEGS + leg];
                fuse_pack<fuse_bf16, VEC> (&cast29_in)[ITEMS] = cast29_kept[block * LEGS + leg];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast46_out[VEC];
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float sub = cast5 - sum;
                        const float mul4 = cast * sub;
                        const float cast6 = fuse_rounded<fuse_bf16>(mul4);
                        const float cast7 = cast6;
                        const float mul5 = cast7 * 0.125f;
                        const float cast8 = mul5;
                        cast46_out[v] = cast8;
                    }
                    fuse_write<STEP_3>(cast46_row + fuse_along<RANK, STEP_3>(e, inner, cast46_strides), cast46_out, cast46_strides.axis[RANK + INNER_RANK - 1]);
                }
            }
        }
    }
}
#else
#define THREADS TEAM
#define ITEMS (TEAM == 1024 ? 16 : 4)
extern "C" __global__ void __launch_bounds__(THREADS) k5_random_ge_mul_sum(
    const fuse_bf16* cast15_ptr,
    const fuse_strides<RANK + INNER_RANK> cast15_strides,
    const fuse_bf16* cast29_ptr,
    const fuse_strides<RANK + INNER_RANK> cast29_strides,
    const long long position_ptr,
    const fuse_strides<RANK + INNER_RANK> position_strides,
    fuse_bf16* cast46_ptr,
    const fuse_strides<RANK + INNER_RANK> cast46_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const fuse_bf16* cast15_row = cast15_ptr + fuse_offset(at, cast15_strides);
        const fuse_bf16* cast29_row = cast29_ptr + fuse_offset(at, cast29_strides);
        const long long position_row = position_ptr + fuse_offset(at, position_strides);
        fuse_bf16* cast46_row = cast46_ptr + fuse_offset(at, cast46_strides);
        constexpr int GROUPS15 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<15, fuse_sum<float>, TEAM, VEC, GROUPS15> sum_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_sum<float>, TEAM, VEC, GROUPS15> sum_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<fuse_bf16, VEC> cast15_in[ITEMS];
                fuse_pack<fuse_bf16, VEC> cast29_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(cast15_in[i], cast15_row + fuse_along<RANK, STEP_0>(e, inner, cast15_strides), cast15_strides.axis[RANK + INNER_RANK - 1]);
                        fuse_read<STEP_1>(cast29_in[i], cast29_row + fuse_along<RANK, STEP_1>(e, inner, cast29_strides), cast29_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float mul3 = cast5 * cast;
                        sum_lanes.add(i, v, fuse_sum<float>::of(mul3, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            sum_blocks.push(sum_lanes);
        }
        const float sum = fuse_sum<float>::value(sum_blocks.total());
        for (IDX block = 0; block < len; block += 16384) {
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<fuse_bf16, VEC> cast15_in[ITEMS];
                fuse_pack<fuse_bf16, VEC> cast29_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(cast15_in[i], cast15_row + fuse_along<RANK, STEP_0>(e, inner, cast15_strides), cast15_strides.axis[RANK + INNER_RANK - 1]);
                        fuse_read<STEP_1>(cast29_in[i], cast29_row + fuse_along<RANK, STEP_1>(e, inner, cast29_strides), cast29_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
                    float cast46_out[VEC];
                    fuse_draw<VEC, STEP_2> draw0(seed, offset0);
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float cast15 = fuse_to_compute(cast15_in[i][v]);
                        const float cast = cast15;
                        const float cast29 = fuse_to_compute(cast29_in[i][v]);
                        const float cast2 = cast29;
                        const long long position = position_row + fuse_along<RANK, STEP_2>(e + v, inner, position_strides);
                        const bool ge = draw0.reaches(position, v, 0x19999a00u);
                        const float cast3 = fuse_cast<float>(ge);
                        const float mul = cast3 * 1.1111112f;
                        const float mul2 = cast2 * mul;
                        const float cast4 = fuse_rounded<fuse_bf16>(mul2);
                        const float cast5 = cast4;
                        const float sub = cast5 - sum;
                        const float mul4 = cast * sub;
                        const float cast6 = fuse_rounded<fuse_bf16>(mul4);
                        const float cast7 = cast6;
                        const float mul5 = cast7 * 0.125f;
                        const float cast8 = mul5;
                        cast46_out[v] = cast8;
                    }
                    fuse_write<STEP_3>(cast46_row + fuse_along<RANK, STEP_3>(e, inner, cast46_strides), cast46_out, cast46_strides.axis[RANK + INNER_RANK - 1]);
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

#if defined(KERNEL_k6_matmul)
// k6_matmul: map[q.0, q.1, q.2] q_grad = bf16(product)
//   src/lib.rs:3  gradient of matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k6_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* q_grad_ptr,
    const fuse_strides<RANK> q_grad_strides,
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
        float q_grad_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            const float q_grad2 = product2;
            q_grad_out[v] = q_grad2;
        }
        fuse_write<STEP_0>(q_grad_ptr + fuse_offset<STEP_0>(at, q_grad_strides), q_grad_out, q_grad_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k6_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* q_grad_ptr,
    const fuse_strides<RANK> q_grad_strides,
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
                    float q_grad_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        const float q_grad2 = product2;
                        q_grad_out[v] = q_grad2;
                    }
                    fuse_write<STEP_0>(q_grad_ptr + fuse_offset<STEP_0>(at, q_grad_strides), q_grad_out, q_grad_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k6_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* q_grad_ptr,
    const fuse_strides<RANK> q_grad_strides,
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
            float q_grad_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                const float q_grad2 = product2;
                q_grad_out[v] = q_grad2;
            }
            fuse_write<STEP_0>(q_grad_ptr + fuse_offset<STEP_0>(at, q_grad_strides), q_grad_out, q_grad_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k7_matmul)
// k7_matmul: map[q.0, k.1, q.2] cast52 = bf16(product)
//   src/lib.rs:3  gradient of matmul(..)
#if defined(SLIM)
extern "C" __global__ void __launch_bounds__(256, 2) k7_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast52_ptr,
    const fuse_strides<RANK> cast52_strides,
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
        float cast52_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float product2 = product[0][i][j + v];
            const float cast = product2;
            cast52_out[v] = cast;
        }
        fuse_write<STEP_0>(cast52_ptr + fuse_offset<STEP_0>(at, cast52_strides), cast52_out, cast52_strides.axis[RANK - 1]);
    }
}
#elif defined(HALVES)
extern "C" __global__ void __launch_bounds__(384, 1) k7_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast52_ptr,
    const fuse_strides<RANK> cast52_strides,
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
                    float cast52_out[VEC];
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float product2 = value[v];
                        const float cast = product2;
                        cast52_out[v] = cast;
                    }
                    fuse_write<STEP_0>(cast52_ptr + fuse_offset<STEP_0>(at, cast52_strides), cast52_out, cast52_strides.axis[RANK - 1]);
                }
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(2 * TILE, 2) k7_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* cast52_ptr,
    const fuse_strides<RANK> cast52_strides,
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
            float cast52_out[VEC];
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float product2 = product[i][j + v];
                const float cast = product2;
                cast52_out[v] = cast;
            }
            fuse_write<STEP_0>(cast52_ptr + fuse_offset<STEP_0>(at, cast52_strides), cast52_out, cast52_strides.axis[RANK - 1]);
        }
    }
}
#endif
#endif

#if defined(KERNEL_k0_attention_drops)
// k0_attention_drops: map[q.0, q.1, k.1] cast24 = product; cast24 = mul(cast24, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))
//   src/lib.rs:3  matmul(..)
//   src/lib.rs:4  mul(..)
//   src/lib.rs:5  softmax(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:7  matmul(..)
extern "C" __global__ void __launch_bounds__(128 * (HEAD_GROUPS + 1)) k0_attention_drops(
    unsigned* of_kept,
    const fuse_attention_shape shape,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    const unsigned long long seed,
    const unsigned long long offset0) {
    fuse_behind();
    fuse_draw<4, STEP_1> draw0(seed, offset0);
    // What is kept, v-th of four, of query m and key n.
    const auto keeps = [&](const int (&batch)[3], const int m, const int n, const int v) -> bool {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const long long position = position_ptr + fuse_offset<STEP_1>(at, position_strides);
        const bool ge = draw0.reaches(position, v, 0x19999a00u);
        return ge;
    };
    // What the draw's position is, of query m and key n.
    const auto place = [&](const int (&batch)[3], const int m, const int n) -> long long {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const long long position = position_ptr + fuse_offset<STEP_1>(at, position_strides);
        return position;
    };
    fuse_draw_kept(draw0, 0x19999a00u, place, keeps, of_kept, shape);
}
#endif

#if defined(KERNEL_k0_attention)
// k0_attention: map[q.0, q.1, k.1] cast24 = product; cast24 = mul(cast24, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))
//   src/lib.rs:3  matmul(..)
//   src/lib.rs:4  mul(..)
//   src/lib.rs:5  softmax(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:7  matmul(..)
extern "C" __global__ void __launch_bounds__(HEAD_THREADS, 1) k0_attention(
    const fuse_bf16* of_queries,
    const fuse_heads of_queries_strides,
    const fuse_bf16* of_keys,
    const fuse_heads of_keys_strides,
    const fuse_bf16* of_values,
    const fuse_heads of_values_strides,
    fuse_bf16* of_result,
    const fuse_heads of_result_strides,
    float* of_logs,
    const unsigned* of_kept,
    const fuse_attention_shape shape,
    unsigned* counters,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    const unsigned long long seed,
    const unsigned long long offset0) {
    fuse_behind();
    fuse_draw<1, 2> draw0(seed, offset0);
    // What becomes of the product of query m and key n.
    const auto to_score = [&](const int (&batch)[3], const float product, const int m, const int n) -> float {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const float product2 = product;
        return product2;
    };
    const fuse_kept to_weight = {of_kept, shape, (float)1.1111112f};
#if defined(HEAD_ROWS)
    typedef fuse_attention_warps<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_ROWS, HEAD_KEYS, HEAD_PIECES, false, false, true, true, false> attend;
#else
    typedef fuse_attention<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_GROUPS, HEAD_KEYS, false, false, true, true, false> attend;
#endif
    attend::run({of_queries, of_queries_strides}, {of_keys, of_keys_strides}, {of_values, of_values_strides}, of_result, of_result_strides, of_logs,
                shape, counters, 0.125f, to_score, to_weight);
}
#endif

#if defined(KERNEL_k0_attention_queries)
// k0_attention_queries: map[q.0, q.1, k.1] cast24 = product; cast24 = mul(cast24, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)); cast46 = cast46
//   src/lib.rs:3  matmul(..)
//   src/lib.rs:4  mul(..)
//   src/lib.rs:5  softmax(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:7  matmul(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:6  gradient of dropout(..)
//   src/lib.rs:5  gradient of softmax(..)
//   src/lib.rs:4  gradient of mul(..)
extern "C" __global__ void __launch_bounds__(HEAD_THREADS, 1) k0_attention_queries(
    const fuse_bf16* of_queries,
    const fuse_heads of_queries_strides,
    const fuse_bf16* of_keys,
    const fuse_heads of_keys_strides,
    const fuse_bf16* of_values,
    const fuse_heads of_values_strides,
    const fuse_bf16* of_result,
    const fuse_heads of_result_strides,
    const fuse_bf16* of_gradient,
    const fuse_heads of_gradient_strides,
    fuse_bf16* of_gradient_of_queries,
    const fuse_heads of_gradient_of_queries_strides,
    const float* of_logs,
    float* of_sums,
    const unsigned* of_kept,
    const fuse_attention_shape shape,
    unsigned* counters,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    const unsigned long long seed,
    const unsigned long long offset0) {
    fuse_behind();
    fuse_draw<1, 2> draw0(seed, offset0);
    // What becomes of the product of query m and key n.
    const auto to_score = [&](const int (&batch)[3], const float product, const int m, const int n) -> float {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const float product2 = product;
        return product2;
    };
    const fuse_kept of_weight = {of_kept, shape, (float)1.1111112f};
    // What the gradient of the product is of query m and key n.
    const auto of_score = [&](const int (&batch)[3], const float given, const float product, const int m, const int n) -> float {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const float cast46 = given;
        return cast46;
    };
#if defined(HEAD_ROWS)
    typedef fuse_attention_warps_dq<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_ROWS, HEAD_KEYS, HEAD_PIECES, false, true, false> attend;
#else
    typedef fuse_attention_dq<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_GROUPS, HEAD_KEYS, false, true, false> attend;
#endif
    attend::run({of_queries, of_queries_strides}, {of_keys, of_keys_strides}, {of_values, of_values_strides}, {of_result, of_result_strides}, {of_gradient, of_gradient_strides}, of_logs, of_sums, of_gradient_of_queries, of_gradient_of_queries_strides,
                shape, counters, 0.125f, to_score, of_weight, of_score);
}
#endif

#if defined(KERNEL_k0_attention_keys)
// k0_attention_keys: map[q.0, q.1, k.1] cast24 = product; cast24 = mul(cast24, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)); cast46 = cast46
//   src/lib.rs:3  matmul(..)
//   src/lib.rs:4  mul(..)
//   src/lib.rs:5  softmax(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:7  matmul(..)
//   src/lib.rs:6  dropout(..)
//   src/lib.rs:6  gradient of dropout(..)
//   src/lib.rs:5  gradient of softmax(..)
//   src/lib.rs:4  gradient of mul(..)
extern "C" __global__ void __launch_bounds__(HEAD_THREADS, 1) k0_attention_keys(
    const fuse_bf16* of_queries,
    const fuse_heads of_queries_strides,
    const fuse_bf16* of_keys,
    const fuse_heads of_keys_strides,
    const fuse_bf16* of_values,
    const fuse_heads of_values_strides,
    const fuse_bf16* of_gradient,
    const fuse_heads of_gradient_strides,
    fuse_bf16* of_gradient_of_keys,
    const fuse_heads of_gradient_of_keys_strides,
    fuse_bf16* of_gradient_of_values,
    const fuse_heads of_gradient_of_values_strides,
    const float* of_logs,
    const float* of_sums,
    const unsigned* of_kept,
    const fuse_attention_shape shape,
    unsigned* counters,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    const unsigned long long seed,
    const unsigned long long offset0) {
    fuse_behind();
    fuse_draw<1, 2> draw0(seed, offset0);
    // What becomes of the product of query m and key n.
    const auto to_score = [&](const int (&batch)[3], const float product, const int m, const int n) -> float {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const float product2 = product;
        return product2;
    };
    const fuse_kept to_weight = {of_kept, shape, (float)1.1111112f};
    const fuse_kept of_weight = {of_kept, shape, (float)1.1111112f};
    // What the gradient of the product is of query m and key n.
    const auto of_score = [&](const int (&batch)[3], const float given, const float product, const int m, const int n) -> float {
        const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};
        const float cast46 = given;
        return cast46;
    };
#if defined(HEAD_ROWS)
    typedef fuse_attention_warps_dkv<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_ROWS, HEAD_KEYS, HEAD_PIECES, false, true, false> attend;
#else
    typedef fuse_attention_dkv<fuse_bf16, fuse_bf16, HEAD_DEPTH, HEAD_COLUMNS, HEAD_GROUPS, HEAD_KEYS, false, true, false> attend;
#endif
    attend::run({of_queries, of_queries_strides}, {of_keys, of_keys_strides}, {of_values, of_values_strides}, {of_gradient, of_gradient_strides}, of_logs, of_sums, of_gradient_of_keys, of_gradient_of_keys_strides, of_gradient_of_values, of_gradient_of_values_strides,
                shape, counters, 0.125f, to_score, to_weight, of_weight, of_score);
}
#endif

