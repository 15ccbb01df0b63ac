// pointwise

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

// From the compute type to the element type T, to nearest and ties to even.
template <class T> struct fuse_element { template <class C> static __device__ __forceinline__ T of(C x) { return x; } };

template <> struct fuse_element<fuse_f16> { static __device__ __forceinline__ fuse_f16 of(float x) { return fuse_to_f16(x); } };

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
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    T0 x_in[2][VEC];
    T0 y_in[2][VEC];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(x_in[u], x_ptr + fuse_offset(at[u], x_strides), x_strides.axis[RANK - 1], live);
        fuse_read<STEP_1>(y_in[u], y_ptr + fuse_offset(at[u], y_strides), y_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        T0 add9_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const C0 x = fuse_to_compute(x_in[u][v]);
            const C0 mul = fuse_rounded<T0>(x * (C0)2.0);
            const C0 add = fuse_rounded<T0>(mul + (C0)1.0);
            const C0 relu = fuse_rounded<T0>((add < 0 ? 0 : add));
            const C0 gate = fuse_rounded<T0>(fuse_sigmoid(x));
            const C0 mul2 = fuse_rounded<T0>(relu * gate);
            const C0 y = fuse_to_compute(y_in[u][v]);
            const C0 add2 = fuse_rounded<T0>(mul2 + y);
            add9_out[v] = fuse_element<T0>::of(add2);
        }
        fuse_write<STEP_2>(add9_ptr + fuse_offset(at[u], add9_strides), add9_out, add9_strides.axis[RANK - 1], live);
    }
}
#endif

