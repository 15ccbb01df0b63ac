// several_maps

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

// A square tile of points of the last two axes, at one place of the axes before them. The last extent counts accesses.
template <int N, int SIDE> struct fuse_tile {
    fuse_at<N> first;
    IDX before, last;

    __device__ __forceinline__ fuse_tile(IDX n, const fuse_extents<N>& extents)
        : before(extents.axis[N - 2].extent), last(extents.axis[N - 1].extent * VEC)
    {
        const IDX across = (last + SIDE - 1) / SIDE, down = (before + SIDE - 1) / SIDE;
        first.axis[N - 1] = n % across * SIDE;
        first.axis[N - 2] = n / across % down * SIDE;
        n = n / across / down;
#pragma unroll
        for (int k = N - 3; k > 0; --k) {
            first.axis[k] = n % extents.axis[k].extent;
            n /= extents.axis[k].extent;
        }
        if (N > 2) first.axis[0] = n;
    }

    __device__ __forceinline__ fuse_at<N> at(int x, int y) const
    {
        fuse_at<N> place = first;
        place.axis[N - 1] += x;
        place.axis[N - 2] += y;
        return place;
    }

    __device__ __forceinline__ bool has(const fuse_at<N>& place) const
    {
        return place.axis[N - 1] < last && place.axis[N - 2] < before;
    }
};

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

__device__ __forceinline__ float fuse_tanh(float x) { return tanhf(x); }
__device__ __forceinline__ double fuse_tanh(double x) { return tanh(x); }

#if defined(KERNEL_k0_random_ge_mul)
// k0_random_ge_mul: map[x.0] cast12 = T0(mul(C0(x), mul(C0(ge(uniform0(position), 0.10000000149011612)), C0(1.1111111111111112))))
//   src/lib.rs:2  dropout(..)
extern "C" __global__ void __launch_bounds__(256) k0_random_ge_mul(
    const T0* x_ptr,
    const fuse_strides<RANK> x_strides,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    T0* cast12_ptr,
    const fuse_strides<RANK> cast12_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> x_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(x_in[u], x_ptr + fuse_offset<STEP_0>(at[u], x_strides), x_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 cast12_out[VEC];
        fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 x = fuse_to_compute(x_in[u][v]);
            const C0 cast = x;
            const long long position = position_ptr + fuse_offset(at[u], position_strides) + (v < live ? v : 0) * position_strides.axis[RANK - 1];
            const bool ge = draw0.reaches(position, v, 0x19999a00u);
            const C0 cast2 = fuse_cast<C0>(ge);
            const C0 cast3 = fuse_cast<C0>(1.1111111111111112);
            const C0 mul = cast2 * cast3;
            const C0 mul2 = cast * mul;
            const C0 cast4 = mul2;
            cast12_out[v] = cast4;
        }
        fuse_write<STEP_2>(cast12_ptr + fuse_offset<STEP_2>(at[u], cast12_strides), cast12_out, cast12_strides.axis[RANK - 1], live);
    }
}
#endif

#if defined(KERNEL_k1_add)
// k1_add: map[y.1, y.0] add14 = add(y, y)
//   src/lib.rs:4  add(..)
#if defined(TILED)
extern "C" __global__ void __launch_bounds__(256) k1_add(
    const T0* y_ptr,
    const fuse_strides<RANK> y_strides,
    T0* add14_ptr,
    const fuse_strides<RANK> add14_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const fuse_tile<RANK, TILE> tile(blockIdx.x, outer);
    constexpr int ACROSS = TILE / VEC, DOWN = 256 / ACROSS, PASSES = TILE / DOWN;
    const int column = threadIdx.x % ACROSS * VEC, row = threadIdx.x / ACROSS;
    fuse_pack<T0, VEC> y_in[PASSES];
    fuse_at<RANK> at[PASSES];
    const int live = VEC;
#pragma unroll
    for (int u = 0; u < PASSES; ++u) {
        at[u] = tile.at(column, row + DOWN * u);
        if (!tile.has(at[u])) continue;
        if (STEP_0 != 3) fuse_read<STEP_0>(y_in[u], y_ptr + fuse_offset<STEP_0>(at[u], y_strides), y_strides.axis[RANK - 1]);
    }
    __shared__ T0 y_tile[STEP_0 == 3 ? TILE : 1][TILE + 1];
    if (STEP_0 == 3) {
#pragma unroll
        for (int u = 0; u < PASSES; ++u) {
            const fuse_at<RANK> turned = tile.at(row + DOWN * u, column);
            if (!tile.has(turned)) continue;
            fuse_pack<T0, VEC> pack;
            pack.load(y_ptr + fuse_offset(turned, y_strides));
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                y_tile[row + DOWN * u][column + v] = pack[v];
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < PASSES; ++u) {
        if (!tile.has(at[u])) continue;
        if (STEP_0 == 3) {
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                y_in[u].set(v, y_tile[column + v][row + DOWN * u]);
            }
        }
        C0 add14_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 y = fuse_to_compute(y_in[u][v]);
            const C0 add = y + y;
            add14_out[v] = add;
        }
        fuse_write<STEP_1>(add14_ptr + fuse_offset<STEP_1>(at[u], add14_strides), add14_out, add14_strides.axis[RANK - 1], live);
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) k1_add(
    const T0* y_ptr,
    const fuse_strides<RANK> y_strides,
    T0* add14_ptr,
    const fuse_strides<RANK> add14_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> y_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(y_in[u], y_ptr + fuse_offset<STEP_0>(at[u], y_strides), y_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 add14_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 y = fuse_to_compute(y_in[u][v]);
            const C0 add = y + y;
            add14_out[v] = add;
        }
        fuse_write<STEP_1>(add14_ptr + fuse_offset<STEP_1>(at[u], add14_strides), add14_out, add14_strides.axis[RANK - 1], live);
    }
}
#endif
#endif

#if defined(KERNEL_k2_tanh)
// k2_tanh: map[z.0, z.1, z.2] tanh15 = tanh(z)
//   src/lib.rs:5  tanh(..)
extern "C" __global__ void __launch_bounds__(256) k2_tanh(
    const T0* z_ptr,
    const fuse_strides<RANK> z_strides,
    T0* tanh15_ptr,
    const fuse_strides<RANK> tanh15_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> z_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(z_in[u], z_ptr + fuse_offset<STEP_0>(at[u], z_strides), z_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 tanh15_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 z = fuse_to_compute(z_in[u][v]);
            const C0 tanh2 = fuse_tanh(z);
            tanh15_out[v] = tanh2;
        }
        fuse_write<STEP_1>(tanh15_ptr + fuse_offset<STEP_1>(at[u], tanh15_strides), tanh15_out, tanh15_strides.axis[RANK - 1], live);
    }
}
#endif

#if defined(KERNEL_k0_small)
// k0_small: 3 kernels in one launch
#undef RANK
#undef VEC
#define THREADS 256
// k0_random_ge_mul: map[x.0] cast12 = T0(mul(C0(x), mul(C0(ge(uniform0(position), 0.10000000149011612)), C0(1.1111111111111112))))
//   src/lib.rs:2  dropout(..)
#define RANK PART_0_RANK
#define VEC PART_0_VEC
#define STEP_0 PART_0_STEP_0
#define STEP_1 PART_0_STEP_1
#define STEP_2 PART_0_STEP_2
static __device__ __forceinline__ void k0_random_ge_mul(
    const unsigned block,
    const T0* x_ptr,
    const fuse_strides<RANK> x_strides,
    const long long position_ptr,
    const fuse_strides<RANK> position_strides,
    T0* cast12_ptr,
    const fuse_strides<RANK> cast12_strides,
    const unsigned long long seed,
    const unsigned long long offset0,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)block * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> x_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(x_in[u], x_ptr + fuse_offset<STEP_0>(at[u], x_strides), x_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 cast12_out[VEC];
        fuse_draw<VEC, STEP_1> draw0(seed, offset0);
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 x = fuse_to_compute(x_in[u][v]);
            const C0 cast = x;
            const long long position = position_ptr + fuse_offset(at[u], position_strides) + (v < live ? v : 0) * position_strides.axis[RANK - 1];
            const bool ge = draw0.reaches(position, v, 0x19999a00u);
            const C0 cast2 = fuse_cast<C0>(ge);
            const C0 cast3 = fuse_cast<C0>(1.1111111111111112);
            const C0 mul = cast2 * cast3;
            const C0 mul2 = cast * mul;
            const C0 cast4 = mul2;
            cast12_out[v] = cast4;
        }
        fuse_write<STEP_2>(cast12_ptr + fuse_offset<STEP_2>(at[u], cast12_strides), cast12_out, cast12_strides.axis[RANK - 1], live);
    }
}
#undef RANK
#undef VEC
#undef STEP_0
#undef STEP_1
#undef STEP_2
// k1_add: map[y.1, y.0] add14 = add(y, y)
//   src/lib.rs:4  add(..)
#define RANK PART_1_RANK
#define VEC PART_1_VEC
#define STEP_0 PART_1_STEP_0
#define STEP_1 PART_1_STEP_1
static __device__ __forceinline__ void k1_add(
    const unsigned block,
    const T0* y_ptr,
    const fuse_strides<RANK> y_strides,
    T0* add14_ptr,
    const fuse_strides<RANK> add14_strides,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)block * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> y_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(y_in[u], y_ptr + fuse_offset<STEP_0>(at[u], y_strides), y_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 add14_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 y = fuse_to_compute(y_in[u][v]);
            const C0 add = y + y;
            add14_out[v] = add;
        }
        fuse_write<STEP_1>(add14_ptr + fuse_offset<STEP_1>(at[u], add14_strides), add14_out, add14_strides.axis[RANK - 1], live);
    }
}
#undef RANK
#undef VEC
#undef STEP_0
#undef STEP_1
// k2_tanh: map[z.0, z.1, z.2] tanh15 = tanh(z)
//   src/lib.rs:5  tanh(..)
#define RANK PART_2_RANK
#define VEC PART_2_VEC
#define STEP_0 PART_2_STEP_0
#define STEP_1 PART_2_STEP_1
static __device__ __forceinline__ void k2_tanh(
    const unsigned block,
    const T0* z_ptr,
    const fuse_strides<RANK> z_strides,
    T0* tanh15_ptr,
    const fuse_strides<RANK> tanh15_strides,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)block * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> z_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(z_in[u], z_ptr + fuse_offset<STEP_0>(at[u], z_strides), z_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 tanh15_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 z = fuse_to_compute(z_in[u][v]);
            const C0 tanh2 = fuse_tanh(z);
            tanh15_out[v] = tanh2;
        }
        fuse_write<STEP_1>(tanh15_ptr + fuse_offset<STEP_1>(at[u], tanh15_strides), tanh15_out, tanh15_strides.axis[RANK - 1], live);
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
    const fuse_strides<PART_0_RANK> of_0_1,
    const long long of_0_2,
    const fuse_strides<PART_0_RANK> of_0_3,
    T0* of_0_4,
    const fuse_strides<PART_0_RANK> of_0_5,
    const unsigned long long of_0_6,
    const unsigned long long of_0_7,
    const fuse_extents<PART_0_RANK> of_0_8,
    const T0* of_1_0,
    const fuse_strides<PART_1_RANK> of_1_1,
    T0* of_1_2,
    const fuse_strides<PART_1_RANK> of_1_3,
    const fuse_extents<PART_1_RANK> of_1_4,
    const T0* of_2_0,
    const fuse_strides<PART_2_RANK> of_2_1,
    T0* of_2_2,
    const fuse_strides<PART_2_RANK> of_2_3,
    const fuse_extents<PART_2_RANK> of_2_4) {
    fuse_behind();
    int part = 0;
    for (int step = 2; step > 0; step /= 2)
        if (end.of[part + step - 1] <= blockIdx.x) part += step;
    const unsigned block = blockIdx.x - (part > 0 ? end.of[part - 1] : 0);
    switch (part) {
        case 0: return k0_random_ge_mul(block, of_0_0, of_0_1, of_0_2, of_0_3, of_0_4, of_0_5, of_0_6, of_0_7, of_0_8);
        case 1: return k1_add(block, of_1_0, of_1_1, of_1_2, of_1_3, of_1_4);
        case 2: return k2_tanh(block, of_2_0, of_2_1, of_2_2, of_2_3, of_2_4);
    }
}
#endif

