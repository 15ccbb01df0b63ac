// column_sum

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

// The canonical column order: chunks of at most 256, each of a multiple of 256 rows.
static __device__ __forceinline__ long long fuse_chunk_rows(long long rows)
{
    long long chunks = (rows + 255) / 256;
    if (chunks < 1) chunks = 1;
    if (chunks > 256) chunks = 256;
    const long long chunk = ((rows + chunks - 1) / chunks + 255) / 256 * 256;
    return chunk < 256 ? 256 : chunk;
}

// Joins the 8 lanes of every column of a tile in a tree of strides 1, 2, 4; every lane's thread gets the value.
template <class R, int PER>
static __device__ __forceinline__ void fuse_join_lanes(typename R::Acc (&lane)[PER])
{
    using Acc = typename R::Acc;
    __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * 8 * 32 * PER];
    Acc* all = (Acc*)bytes;
    __syncthreads();
#pragma unroll
    for (int v = 0; v < PER; ++v) all[v * 256 + threadIdx.x] = lane[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < PER; ++v) {
        Acc of[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) of[k] = all[v * 256 + k * 32 + threadIdx.x % 32];
#pragma unroll
        for (int s = 1; s < 8; s *= 2)
#pragma unroll
            for (int k = 0; k + s < 8; k += 2 * s) of[k] = R::join(of[k], of[k + s]);
        lane[v] = of[0];
    }
}

// Joins the chunks of a tile's columns, which lie `columns` apart; of each thread several are read at once.
template <class R, int PER>
static __device__ __forceinline__ void fuse_join_columns(
    typename R::Acc (&value)[PER], const typename R::Acc* chunk, int chunks, long long columns, bool live)
{
    struct alignas(sizeof(typename R::Acc) * PER < 16 ? sizeof(typename R::Acc) * PER : 16) Some { typename R::Acc of[PER]; };
    constexpr int AHEAD = sizeof(Some) > 16 ? 2 : 4;
#pragma unroll
    for (int v = 0; v < PER; ++v) value[v] = R::none();
    for (int first = threadIdx.x / 32; live && first < chunks; first += 8 * AHEAD) {
        Some ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (first + 8 * k < chunks) ahead[k] = fuse_fresh((const Some*)(chunk + (first + 8 * k) * columns));
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
#pragma unroll
            for (int v = 0; v < PER; ++v)
                if (first + 8 * k < chunks) value[v] = R::join(value[v], ahead[k].of[v]);
    }
    fuse_join_lanes<R>(value);
}

#if defined(KERNEL_k0_mul_sum)
// k0_mul_sum: column[x.1 | x.0] sum2 = sum(mul(x, x))
//   src/lib.rs:2  mul(..)
//   src/lib.rs:3  sum(..)
#define THREADS 256
extern "C" __global__ void __launch_bounds__(THREADS) k0_mul_sum(
    const float* x_ptr,
    const fuse_strides<RANK + INNER_RANK> x_strides,
    float* sum2_ptr,
    const fuse_strides<RANK> sum2_strides,
    fuse_sum<float>::Acc* sum_part,
    unsigned* counters,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const IDX columns = (IDX)outer.points;
    const unsigned tiles = (unsigned)((columns + 32 * VEC - 1) / (32 * VEC));
    const unsigned tile = blockIdx.x % tiles, chunk = blockIdx.x / tiles, chunks = gridDim.x / tiles;
    const IDX chunk_len = (IDX)fuse_chunk_rows(inner.points);
    const IDX start = chunk * chunk_len, end = min(len, start + chunk_len);
    const int lane = threadIdx.x / 32;
    const IDX column = ((IDX)tile * 32 + threadIdx.x % 32) * VEC;
    const bool live = column < columns;
    fuse_at<RANK> at = fuse_unravel(live ? column / VEC : 0, outer);
    at.axis[RANK - 1] *= VEC;
    const float* x_row = x_ptr + fuse_offset(at, x_strides);
    float* sum2_row = sum2_ptr + fuse_offset(at, sum2_strides);
    fuse_sum<float>::Acc sum_chunk[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
        sum_chunk[v] = fuse_sum<float>::none();
    }
    constexpr int ITEMS = (VEC >= 4 ? 4 : 8);
    for (IDX block = start; block < end; block += 256) {
        fuse_sum<float>::Acc sum_lanes[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            sum_lanes[v] = fuse_sum<float>::none();
        }
        const auto step = [&](IDX base, auto whole) {
            constexpr bool WHOLE = whole.value;
            fuse_pack<float, VEC> x_in[ITEMS];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const IDX e = base + i * 8;
                if (WHOLE || e < end) {
                    fuse_read<STEP_0>(x_in[i], x_row + fuse_along<RANK>(e, inner, x_strides), x_strides.axis[RANK - 1]);
                }
            }
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const IDX e = base + i * 8;
                if (!WHOLE && e >= end) break;
#pragma unroll
                for (int v = 0; v < VEC; ++v) {
                    const float x = fuse_to_compute(x_in[i][v]);
                    const float mul = x * x;
                    sum_lanes[v] = fuse_sum<float>::join(sum_lanes[v], fuse_sum<float>::of(mul, e));
                }
            }
        };
        if (live && block + 256 <= end) {
#pragma unroll
            for (int k = 0; k < 32 / ITEMS; ++k) {
                step(block + lane + k * 8 * ITEMS, fuse_bool<true>());
            }
        }
        else if (live) {
            for (IDX base = block + lane; base < end; base += 8 * ITEMS) {
                step(base, fuse_bool<false>());
            }
        }
        fuse_join_lanes<fuse_sum<float>>(sum_lanes);
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            sum_chunk[v] = block == start ? sum_lanes[v] : fuse_sum<float>::join(sum_chunk[v], sum_lanes[v]);
        }
    }
    if (chunks > 1) {
        if (live && lane == 0) {
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                sum_part[(long long)chunk * columns + column + v] = sum_chunk[v];
            }
        }
        if (!fuse_last(counters + 1 + tile, chunks)) return;
        fuse_join_columns<fuse_sum<float>>(sum_chunk, sum_part + column, chunks, columns, live);
    }
    if (live && lane == 0) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
            const float sum = fuse_sum<float>::value(sum_chunk[v]);
            sum2_row[v * sum2_strides.axis[RANK - 1]] = fuse_element<float>::of(sum);
        }
    }
}
#endif

