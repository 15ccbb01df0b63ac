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

// A program of a weight is run place by place.
template <int N, bool TURNED, class WEIGHT> struct fuse_multipliers {
    const WEIGHT& weight;

    __device__ __forceinline__ void look(const int (&)[3], int, int, int, int) {}

    __device__ __forceinline__ float apply(const int (&batch)[3], int, float x, int m, int n) const { return weight(batch, x, m, n); }
};

// What is kept is looked up before it is needed, one bit a place: four neighbours along a row share a draw, so each of the threads
// that have them asks for all four of some rows, and they exchange what they know.
template <int N, bool TURNED, class KEEP> struct fuse_multipliers<N, TURNED, fuse_drops<KEEP>> {
    static constexpr int SHARERS = TURNED ? 4 : 2, WORDS = N / 32;
    static_assert(N % 32 == 0, "whole words of bits");
    const fuse_drops<KEEP>& drops;
    unsigned kept[SHARERS][WORDS];

    // From query m and key n on, which are the first that the thread has; the last ones that are.
    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int last_m, int last_n)
    {
        const int lane = threadIdx.x % 32, own = TURNED ? lane / 4 % 4 : lane % 2;
        const int row = m + (TURNED ? own % 2 : own * 8), first = TURNED ? n - own + own / 2 * 8 : n - own * 2;
#pragma unroll
        for (int word = 0; word < WORDS; ++word) {
            unsigned bits = 0;
#pragma unroll 1
            for (int j = 0; j < 8; ++j) {
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

// One of two, where they are alike.
template <class A> static __device__ __forceinline__ const A& fuse_first_if_same(const A& first, const A&) { return first; }
template <class A, class B> static __device__ __forceinline__ const B& fuse_first_if_same(const A&, const B& other) { return other; }
#endif
