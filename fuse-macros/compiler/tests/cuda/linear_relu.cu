// linear_relu

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

// Strides of a matrix: batch axes, then its two axes.
struct fuse_matrix { long long axis[5]; };
// Extents of a product: batch axes, rows, columns, inner extent.
struct fuse_shape { long long batch[3], m, n, k; };

static __device__ __forceinline__ fuse_at<3> fuse_batch_of(long long n, const fuse_shape& shape)
{
    const long long two = n / shape.batch[2], one = two / shape.batch[1];
    return {one, two - one * shape.batch[1], n - two * shape.batch[2]};
}

static __device__ __forceinline__ long long fuse_batch(const fuse_at<3>& batch, const fuse_matrix& strides)
{
    return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
}

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

// Loads a tile of 16 by 64 of a matrix; elements outside are 0. Neighbouring threads go along the axis that lies dense in memory.
template <class T, class A>
static __device__ __forceinline__ void fuse_load_tile(
    A (&tile)[16][65], const T* from, long long k0, long long k_end, long long k_stride, long long x0, long long x_end, long long x_stride)
{
    const bool along_k = k_stride == 1;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const int n = step * 256 + threadIdx.x;
        const int k = along_k ? n % 16 : n / 64, x = along_k ? n / 16 : n % 64;
        const bool inside = k0 + k < k_end && x0 + x < x_end;
        tile[k][x] = inside ? fuse_to_compute(from[(k0 + k) * k_stride + (x0 + x) * x_stride]) : A(0);
    }
}

// The product of a 64 by 64 tile: thread (ty, tx) of 16 by 16 has rows ty + 16 i and columns tx + 16 j. Inner positions ascend.
template <class T, class A>
static __device__ __forceinline__ void fuse_multiply_tile(
    A (&product)[4][4], const T* a, const fuse_matrix& a_strides, const T* b, const fuse_matrix& b_strides,
    const fuse_shape& shape, long long m0, long long n0)
{
    __shared__ A a_tile[16][65], b_tile[16][65];
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    for (long long k0 = 0; k0 < shape.k; k0 += 16) {
        fuse_load_tile(a_tile, a, k0, shape.k, a_strides.axis[4], m0, shape.m, a_strides.axis[3]);
        fuse_load_tile(b_tile, b, k0, shape.k, b_strides.axis[3], n0, shape.n, b_strides.axis[4]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            A left[4], right[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) left[i] = a_tile[k][ty + 16 * i];
#pragma unroll
            for (int j = 0; j < 4; ++j) right[j] = b_tile[k][tx + 16 * j];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) product[i][j] = fuse_multiply_add(left[i], right[j], product[i][j]);
        }
        __syncthreads();
    }
}

#if defined(KERNEL_k0_matmul)
// k0_matmul: map[x.0, w.1] product3 = product
//   src/lib.rs:2  matmul(..)
extern "C" __global__ void __launch_bounds__(256) k0_matmul(
    const fuse_bf16* left,
    const fuse_matrix left_strides,
    const fuse_bf16* right,
    const fuse_matrix right_strides,
    const fuse_shape shape,
    fuse_bf16* product3_ptr,
    const fuse_strides<RANK> product3_strides) {
    const long long tiles_n = (shape.n + 63) / 64;
    const long long tiles_m = (shape.m + 63) / 64;
    const long long n0 = blockIdx.x % tiles_n * 64;
    const long long m0 = blockIdx.x / tiles_n % tiles_m * 64;
    const fuse_at<3> batch = fuse_batch_of(blockIdx.x / tiles_n / tiles_m, shape);
    float product[4][4] = {};
    fuse_multiply_tile(product, left + fuse_batch(batch, left_strides), left_strides, right + fuse_batch(batch, right_strides), right_strides, shape, m0, n0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const long long m = m0 + threadIdx.x / 16 + 16 * i, n = n0 + threadIdx.x % 16 + 16 * j;
            if (m >= shape.m || n >= shape.n) continue;
            const fuse_at<RANK> at = {batch.axis[0], batch.axis[1], batch.axis[2], m, n};
            const float product2 = product[i][j];
            product3_ptr[fuse_offset(at, product3_strides)] = fuse_element<fuse_bf16>::of(product2);
        }
    }
}
#endif

#if defined(KERNEL_k1_add_relu)
// k1_add_relu: map[x.0, broadcast(w.1, b.0)] relu5 = relu(add(product3, b))
//   src/lib.rs:3  add(..)
//   src/lib.rs:4  relu(..)
extern "C" __global__ void __launch_bounds__(256) k1_add_relu(
    const fuse_bf16* product3_ptr,
    const fuse_strides<RANK> product3_strides,
    const fuse_bf16* b_ptr,
    const fuse_strides<RANK> b_strides,
    fuse_bf16* relu5_ptr,
    const fuse_strides<RANK> relu5_strides,
    const fuse_extents<RANK> outer) {
    const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);
    const IDX first = (IDX)blockIdx.x * 512 + threadIdx.x;
    fuse_at<RANK> at[2];
    fuse_pack<fuse_bf16, VEC> product3_in[2];
    fuse_pack<fuse_bf16, VEC> b_in[2];
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
            const float add = fuse_rounded<fuse_bf16>(product3 + b);
            const float relu = (add < 0 ? 0 : add);
            relu5_out[v] = relu;
        }
        fuse_write<STEP_2>(relu5_ptr + fuse_offset<STEP_2>(at[u], relu5_strides), relu5_out, relu5_strides.axis[RANK - 1], live);
    }
}
#endif

