// pointwise

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

__device__ __forceinline__ float fuse_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ double fuse_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

#if defined(KERNEL_k0_mul_add_relu_sigmoid)
// k0_mul_add_relu_sigmoid: map[broadcast(x.0, y.0), broadcast(x.1, y.1)] add9 = add(mul(relu(add(mul(x, 2), 1)), sigmoid(x)), y)
//   src/lib.rs:2  mul(..)
//   src/lib.rs:3  add(..)
//   src/lib.rs:4  relu(..)
//   src/lib.rs:5  sigmoid(..)
//   src/lib.rs:6  mul(..)
//   src/lib.rs:7  add(..)
extern "C" __global__ void __launch_bounds__(256) k0_mul_add_relu_sigmoid(
    const T0* x_ptr,
    const fuse_strides<RANK> x_strides,
    const T0* y_ptr,
    const fuse_strides<RANK> y_strides,
    T0* add9_ptr,
    const fuse_strides<RANK> add9_strides,
    const fuse_extents<RANK> outer) {
    fuse_behind();
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<T0, VEC> x_in[2];
    fuse_pack<T0, VEC> y_in[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(x_in[u], x_ptr + fuse_offset<STEP_0>(at[u], x_strides), x_strides.axis[RANK - 1], live);
        fuse_read<STEP_1>(y_in[u], y_ptr + fuse_offset<STEP_1>(at[u], y_strides), y_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);
        C0 add9_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 x = fuse_to_compute(x_in[u][v]);
            const C0 mul = fuse_rounded<T0>(x * (C0)2.0);
            const C0 add = fuse_rounded<T0>(mul + (C0)1.0);
            const C0 relu = fuse_rounded<T0>((add < 0 ? 0 : add));
            const C0 gate = fuse_rounded<T0>(fuse_sigmoid(x));
            const C0 mul2 = fuse_rounded<T0>(relu * gate);
            const C0 y = fuse_to_compute(y_in[u][v]);
            const C0 add2 = mul2 + y;
            add9_out[v] = add2;
        }
        fuse_write<STEP_2>(add9_ptr + fuse_offset<STEP_2>(at[u], add9_strides), add9_out, add9_strides.axis[RANK - 1], live);
    }
}
#endif

