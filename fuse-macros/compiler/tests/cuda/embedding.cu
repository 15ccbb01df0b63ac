// embedding

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

// The first fault of a stream, in memory the host reads.
struct fuse_fault { unsigned code, op; unsigned long long call; long long value, extent; unsigned long long last_call; };

static __device__ __noinline__ void fuse_note(
    fuse_fault* fault, unsigned long long call, unsigned code, unsigned op, long long value, long long extent)
{
    volatile fuse_fault* record = fault;
    record->last_call = call;
    if (atomicCAS(&fault->code, 0u, 0xffffffffu) == 0u) {
        record->op = op;
        record->call = call;
        record->value = value;
        record->extent = extent;
        __threadfence_system();
        record->code = code;
    }
}

// The axis a gather or scatter moves along.
struct fuse_axis { long long extent, stride; };

template <class T>
static __device__ __forceinline__ T fuse_gather(
    const T* from, const fuse_axis& axis, long long index, fuse_fault* fault, unsigned long long call, unsigned op)
{
    if (index >= 0 && index < axis.extent) return from[index * axis.stride];
    fuse_note(fault, call, 1, op, index, axis.extent);
    return T();
}

#if defined(KERNEL_k0_gather_relu)
// k0_gather_relu: map[index.0, index.1, weight.1] relu4 = relu(weight[index])
//   src/lib.rs:2  embedding(..)
//   src/lib.rs:3  relu(..)
extern "C" __global__ void __launch_bounds__(256) k0_gather_relu(
    const long long* index_ptr,
    const fuse_strides<RANK> index_strides,
    const fuse_bf16* weight_ptr,
    const fuse_strides<RANK> weight_strides,
    const fuse_axis weight_axis,
    fuse_bf16* relu4_ptr,
    const fuse_strides<RANK> relu4_strides,
    fuse_fault* fault,
    const unsigned long long call,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    long long index_in[2][VEC];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        at[u] = fuse_unravel(access, outer);
        at[u].axis[RANK - 1] *= VEC;
        fuse_read<STEP_0>(index_in[u], index_ptr + fuse_offset(at[u], index_strides), index_strides.axis[RANK - 1], live);
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
        const IDX access = first + u * 256;
        if (access >= accesses) break;
        const int live = (int)min((long long)VEC, outer.points - (long long)access * VEC);
        fuse_bf16 relu4_out[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const long long index = fuse_to_compute(index_in[u][v]);
            const float gathered = fuse_to_compute(fuse_gather(weight_ptr + fuse_offset(at[u], weight_strides) + (v < live ? v : 0) * weight_strides.axis[RANK - 1], weight_axis, index, fault, call, 1));
            const float relu = fuse_rounded<fuse_bf16>((gathered < 0 ? 0 : gathered));
            relu4_out[v] = fuse_element<fuse_bf16>::of(relu);
        }
        fuse_write<STEP_2>(relu4_ptr + fuse_offset(at[u], relu4_strides), relu4_out, relu4_strides.axis[RANK - 1], live);
    }
}
#endif

