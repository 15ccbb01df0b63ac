// bias_gelu

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

// From the compute type to the element type T, to nearest and ties to even.
template <class T> struct fuse_element { template <class C> static __device__ __forceinline__ T of(C x) { return x; } };

template <> struct fuse_element<fuse_bf16> { static __device__ __forceinline__ fuse_bf16 of(float x) { return fuse_to_bf16(x); } };

// A value of the compute type, rounded to the element type T.
template <class T, class C> static __device__ __forceinline__ C fuse_rounded(C x)
{
    return fuse_to_compute(fuse_element<T>::of(x));
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

// The distance of a place from the first element; the axes of `at` are those of `strides` from FROM on.
template <int FROM = 0, int N, int M>
static __device__ __forceinline__ IDX fuse_offset(const fuse_at<N>& at, const fuse_strides<M>& strides)
{
    IDX offset = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) offset += at.axis[k] * strides.axis[FROM + k];
    return offset;
}

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) fuse_pack { T of[N]; };

// Reads N neighbouring points. STEP says how far apart they are: 0 the same element, 1 the next, 2 `stride` elements on.
// Points from `live` on do not exist and repeat the first one.
template <int STEP, int N, class T>
static __device__ __forceinline__ void fuse_read(T (&to)[N], const T* from, IDX stride, int live = N)
{
    if (STEP == 1 && live == N) {
        const fuse_pack<T, N> pack = *(const fuse_pack<T, N>*)from;
#pragma unroll
        for (int k = 0; k < N; ++k) to[k] = pack.of[k];
    } else {
        if (STEP < 2) stride = STEP;
        to[0] = from[0];
#pragma unroll
        for (int k = 1; k < N; ++k) to[k] = STEP > 0 && k < live ? from[k * stride] : to[0];
    }
}

template <int STEP, int N, class T>
static __device__ __forceinline__ void fuse_write(T* to, const T (&from)[N], IDX stride, int live = N)
{
    if (STEP == 1 && live == N) {
        fuse_pack<T, N> pack;
#pragma unroll
        for (int k = 0; k < N; ++k) pack.of[k] = from[k];
        *(fuse_pack<T, N>*)to = pack;
    } else {
        if (STEP < 2) stride = STEP;
        to[0] = from[0];
#pragma unroll
        for (int k = 1; k < N; ++k) if (k < live) to[k * stride] = from[k];
    }
}

__device__ __forceinline__ float fuse_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.707106781f)); }
__device__ __forceinline__ double fuse_gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }

#if defined(KERNEL_k0_add_gelu)
// k0_add_gelu: map[x.0, broadcast(x.1, b.0)] gelu3 = gelu(add(x, b))
//   src/lib.rs:2  add(..)
//   src/lib.rs:3  gelu(..)
extern "C" __global__ void __launch_bounds__(256) k0_add_gelu(
    const fuse_bf16* x_ptr,
    const fuse_strides<RANK> x_strides,
    const fuse_bf16* b_ptr,
    const fuse_strides<RANK> b_strides,
    fuse_bf16* gelu3_ptr,
    const fuse_strides<RANK> gelu3_strides,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_bf16 x_in[2][VEC];
    fuse_bf16 b_in[2][VEC];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(x_in[u], x_ptr + fuse_offset(at[u], x_strides), x_strides.axis[RANK - 1], live);
        fuse_read<STEP_1>(b_in[u], b_ptr + fuse_offset(at[u], b_strides), b_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        fuse_bf16 gelu3_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float x = fuse_to_compute(x_in[u][v]);
            const float b = fuse_to_compute(b_in[u][v]);
            const float add = fuse_rounded<fuse_bf16>(x + b);
            const float gelu = fuse_rounded<fuse_bf16>(fuse_gelu(add));
            gelu3_out[v] = fuse_element<fuse_bf16>::of(gelu);
        }
        fuse_write<STEP_2>(gelu3_ptr + fuse_offset(at[u], gelu3_strides), gelu3_out, gelu3_strides.axis[RANK - 1], live);
    }
}
#endif

