// cumsum

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

// The distance of element `e` of a row, column or line from its first one; STEP as for an offset.
template <int OUTER, int STEP = 2, int INNER, int M>
static __device__ __forceinline__ IDX fuse_along(IDX e, const fuse_extents<INNER>& inner, const fuse_strides<M>& strides)
{
    if constexpr (INNER > 1) return fuse_offset<STEP, OUTER>(fuse_unravel(e, inner), strides);
    else return STEP == 0 ? 0 : STEP == 1 ? e : e * strides.axis[OUTER];
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

#if defined(KERNEL_k0_cumsum)
// k0_cumsum: line[x.0 | x.1] cumsum1 = scan_sum(x)
//   src/lib.rs:2  cumsum(..)
extern "C" __global__ void __launch_bounds__(128) k0_cumsum(
    const fuse_f16* x_ptr,
    const fuse_strides<RANK + INNER_RANK> x_strides,
    fuse_f16* cumsum1_ptr,
    const fuse_strides<RANK + INNER_RANK> cumsum1_strides,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const IDX row = (IDX)blockIdx.x * 128 + threadIdx.x;
    if (row >= (IDX)outer.points) return;
    const fuse_at<RANK> at = fuse_unravel(row, outer);
    const fuse_f16* x_row = x_ptr + fuse_offset(at, x_strides);
    fuse_f16* cumsum1_row = cumsum1_ptr + fuse_offset(at, cumsum1_strides);
    fuse_sum<float>::Acc sum_lanes = fuse_sum<float>::none();
    for (IDX e = 0; e < len; ++e) {
        const float x = fuse_to_compute(*(x_row + fuse_along<RANK>(e, inner, x_strides)));
        sum_lanes = fuse_sum<float>::join(sum_lanes, fuse_sum<float>::of(x, e));
        const float sum = fuse_rounded<fuse_f16>(fuse_sum<float>::value(sum_lanes));
        *(cumsum1_row + fuse_along<RANK>(e, inner, cumsum1_strides)) = fuse_element<fuse_f16>::of(sum);
    }
}
#endif

