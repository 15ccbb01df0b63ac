// argmax

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

// A value and where it was found; of equal ones (-0 and +0 are) the first, of NaNs the first.
template <class V> struct alignas(16) fuse_found { V value; long long index; };

template <class V, bool LARGEST> struct fuse_arg {
    using Acc = fuse_found<V>;
    static __device__ __forceinline__ Acc none() { return Acc{V(), 0x7fffffffffffffffll}; }
    static __device__ __forceinline__ Acc of(V x, long long index) { return Acc{x, index}; }

    static __device__ __forceinline__ bool before(const Acc& a, const Acc& b)
    {
        if (a.index == none().index || b.index == none().index) return a.index < b.index;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan || b_nan) return a_nan && b_nan ? a.index < b.index : a_nan;
        if (a.value != b.value) return LARGEST ? a.value > b.value : a.value < b.value;
        return a.index < b.index;
    }

    static __device__ __forceinline__ Acc join(const Acc& a, const Acc& b) { return before(a, b) ? a : b; }
    static __device__ __forceinline__ long long value(const Acc& a) { return a.index == none().index ? 0 : a.index; }
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

// Joins the chunks of one row, at most 1024, in the lanes' tree; called by all 256 threads of a block.
template <class R> static __device__ __forceinline__ typename R::Acc fuse_join_chunks(const typename R::Acc* chunk, int chunks)
{
    fuse_lanes<R, 256, 4, 1> lanes;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
        const int c = threadIdx.x * 4 + v;
        if (c < chunks) lanes.lane[0][v] = fuse_fresh(chunk + c);
    }
    return lanes.total();
}

#if defined(KERNEL_k0_argmax_max)
// k0_argmax_max: row[x.0 | x.1] argmax1 = argmax(x); max2 = max(x)
//   src/lib.rs:2  argmax(..)
//   src/lib.rs:3  max(..)
#if defined(ITEMS)
#define THREADS (TEAM == 32 ? 128 : TEAM)
extern "C" __global__ void __launch_bounds__(THREADS) k0_argmax_max(
    const float* x_ptr,
    const fuse_strides<RANK + INNER_RANK> x_strides,
    long long* argmax1_ptr,
    const fuse_strides<RANK> argmax1_strides,
    float* max2_ptr,
    const fuse_strides<RANK> max2_strides,
    fuse_arg<float, true>::Acc* argmax_part,
    fuse_largest<float>::Acc* max3_part,
    unsigned* counters,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const float* x_row = x_ptr + fuse_offset(at, x_strides);
        long long* argmax1_row = argmax1_ptr + fuse_offset(at, argmax1_strides);
        float* max2_row = max2_ptr + fuse_offset(at, max2_strides);
        constexpr int GROUPS1 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_lanes<fuse_arg<float, true>, TEAM, VEC, GROUPS1> argmax_lanes;
        fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS1> max3_lanes;
        fuse_pack<float, VEC> x_in[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (WHOLE || e < len) {
                fuse_read<STEP_0>(x_in[i], x_row + fuse_along<RANK, STEP_0>(e, inner, x_strides), x_strides.axis[RANK + INNER_RANK - 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const IDX e = (i * TEAM + lane) * VEC;
            if (!WHOLE && e >= len) continue;
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
                const float x = fuse_to_compute(x_in[i][v]);
                argmax_lanes.add(i, v, fuse_arg<float, true>::of(x, e + v));
                max3_lanes.add(i, v, fuse_largest<float>::of(x, e + v));
            }
            if (ITEMS <= 1024 / (TEAM * VEC)) { argmax_lanes.fold(i); max3_lanes.fold(i); }
        }
        const long long argmax = fuse_arg<float, true>::value(argmax_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        const float max3 = fuse_largest<float>::value(max3_lanes.total<(ITEMS <= 1024 / (TEAM * VEC))>());
        if (lane == 0) {
            *argmax1_row = fuse_element<long long>::of(argmax);
            *max2_row = fuse_element<float>::of(max3);
        }
    }
}
#elif defined(STREAM)
#define THREADS TEAM
#define ITEMS (TEAM == 1024 ? 16 : 4)
extern "C" __global__ void __launch_bounds__(THREADS) k0_argmax_max(
    const float* x_ptr,
    const fuse_strides<RANK + INNER_RANK> x_strides,
    long long* argmax1_ptr,
    const fuse_strides<RANK> argmax1_strides,
    float* max2_ptr,
    const fuse_strides<RANK> max2_strides,
    fuse_arg<float, true>::Acc* argmax_part,
    fuse_largest<float>::Acc* max3_part,
    unsigned* counters,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX row = (IDX)blockIdx.x;
    if (row < (IDX)outer.points) {
        const fuse_at<RANK> at = fuse_unravel(row, outer);
        const float* x_row = x_ptr + fuse_offset(at, x_strides);
        long long* argmax1_row = argmax1_ptr + fuse_offset(at, argmax1_strides);
        float* max2_row = max2_ptr + fuse_offset(at, max2_strides);
        constexpr int GROUPS1 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
        fuse_blocks<1, fuse_arg<float, true>, TEAM, VEC, GROUPS1> argmax_blocks(inner.points);
        fuse_blocks<2, fuse_largest<float>, TEAM, VEC, GROUPS1> max3_blocks(inner.points);
        for (IDX block = 0; block < len; block += 16384) {
            fuse_lanes<fuse_arg<float, true>, TEAM, VEC, GROUPS1> argmax_lanes;
            fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS1> max3_lanes;
            const auto step = [&](IDX base, auto whole) {
                constexpr bool WHOLE = whole.value;
                fuse_pack<float, VEC> x_in[ITEMS];
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (WHOLE || e < len) {
                        fuse_read<STEP_0>(x_in[i], x_row + fuse_along<RANK, STEP_0>(e, inner, x_strides), x_strides.axis[RANK + INNER_RANK - 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const IDX e = base + (i * TEAM + lane) * VEC;
                    if (!WHOLE && e >= len) continue;
#pragma unroll
                    for (int v = 0; v < VEC; ++v) {
                        const float x = fuse_to_compute(x_in[i][v]);
                        argmax_lanes.add(i, v, fuse_arg<float, true>::of(x, e + v));
                        max3_lanes.add(i, v, fuse_largest<float>::of(x, e + v));
                    }
                }
            };
            for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC) {
                if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
                else step(base, fuse_bool<false>());
            }
            argmax_blocks.push(argmax_lanes);
            max3_blocks.push(max3_lanes);
        }
        const long long argmax = fuse_arg<float, true>::value(argmax_blocks.total());
        const float max3 = fuse_largest<float>::value(max3_blocks.total());
        if (lane == 0) {
            *argmax1_row = fuse_element<long long>::of(argmax);
            *max2_row = fuse_element<float>::of(max3);
        }
    }
}
#else
#define TEAM 256
#define THREADS 256
#define ITEMS 4
extern "C" __global__ void __launch_bounds__(THREADS) k0_argmax_max(
    const float* x_ptr,
    const fuse_strides<RANK + INNER_RANK> x_strides,
    long long* argmax1_ptr,
    const fuse_strides<RANK> argmax1_strides,
    float* max2_ptr,
    const fuse_strides<RANK> max2_strides,
    fuse_arg<float, true>::Acc* argmax_part,
    fuse_largest<float>::Acc* max3_part,
    unsigned* counters,
    const fuse_extents<RANK> outer,
    const fuse_extents<INNER_RANK> inner) {
    fuse_behind();
    const IDX len = (IDX)inner.points;
    const int lane = threadIdx.x % TEAM;
    const IDX chunk_len = (IDX)(max(inner.points - 1, 0ll) / 4194304 + 1) * 4096;
    const int chunks = (int)((len + chunk_len - 1) / chunk_len);
    const IDX row = (IDX)blockIdx.x / chunks;
    const int chunk = blockIdx.x % chunks;
    const fuse_at<RANK> at = fuse_unravel(row, outer);
    const float* x_row = x_ptr + fuse_offset(at, x_strides);
    long long* argmax1_row = argmax1_ptr + fuse_offset(at, argmax1_strides);
    float* max2_row = max2_ptr + fuse_offset(at, max2_strides);
    constexpr int GROUPS1 = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;
    fuse_blocks<1, fuse_arg<float, true>, TEAM, VEC, GROUPS1> argmax_blocks(inner.points);
    fuse_blocks<2, fuse_largest<float>, TEAM, VEC, GROUPS1> max3_blocks(inner.points);
    const IDX chunk_end = min(len, (chunk + 1) * chunk_len);
    for (IDX block = chunk * chunk_len; block < chunk_end; block += 16384) {
        fuse_lanes<fuse_arg<float, true>, TEAM, VEC, GROUPS1> argmax_lanes;
        fuse_lanes<fuse_largest<float>, TEAM, VEC, GROUPS1> max3_lanes;
        const auto step = [&](IDX base, auto whole) {
            constexpr bool WHOLE = whole.value;
            fuse_pack<float, VEC> x_in[ITEMS];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const IDX e = base + (i * TEAM + lane) * VEC;
                if (WHOLE || e < len) {
                    fuse_read<STEP_0>(x_in[i], x_row + fuse_along<RANK, STEP_0>(e, inner, x_strides), x_strides.axis[RANK + INNER_RANK - 1]);
                }
            }
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const IDX e = base + (i * TEAM + lane) * VEC;
                if (!WHOLE && e >= len) continue;
#pragma unroll
                for (int v = 0; v < VEC; ++v) {
                    const float x = fuse_to_compute(x_in[i][v]);
                    argmax_lanes.add(i, v, fuse_arg<float, true>::of(x, e + v));
                    max3_lanes.add(i, v, fuse_largest<float>::of(x, e + v));
                }
            }
        };
        for (IDX base = block; base < block + 16384 && base < chunk_end; base += ITEMS * TEAM * VEC) {
            if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());
            else step(base, fuse_bool<false>());
        }
        argmax_blocks.push(argmax_lanes);
        max3_blocks.push(max3_lanes);
    }
    const fuse_arg<float, true>::Acc argmax_chunk = argmax_blocks.total();
    if (threadIdx.x == 0) argmax_part[(long long)row * chunks + chunk] = argmax_chunk;
    const fuse_largest<float>::Acc max3_chunk = max3_blocks.total();
    if (threadIdx.x == 0) max3_part[(long long)row * chunks + chunk] = max3_chunk;
    if (fuse_last(counters + 1 + row, chunks)) {
        const long long argmax = fuse_arg<float, true>::value(fuse_join_chunks<fuse_arg<float, true>>(argmax_part + (long long)row * chunks, chunks));
        const float max3 = fuse_largest<float>::value(fuse_join_chunks<fuse_largest<float>>(max3_part + (long long)row * chunks, chunks));
        if (lane == 0) {
            *argmax1_row = fuse_element<long long>::of(argmax);
            *max2_row = fuse_element<float>::of(max3);
        }
    }
}
#endif
#endif

