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

// The same where that has been drawn before and is a bit in memory: words of 32 keys for one query after the other, then those of the
// keys behind, a head's after another's. There is an even number of queries.
struct fuse_kept {
    const unsigned* bits;
    const fuse_attention_shape& shape;
    float scale;

    static __device__ __forceinline__ int rows(const fuse_attention_shape& shape) { return ((int)shape.m + 1) / 2 * 2; }
    static __device__ __forceinline__ int words(const fuse_attention_shape& shape) { return ((int)shape.n + 31) / 32; }

    // The word of a query and a key; where there is none, another one.
    __device__ __forceinline__ const unsigned* at(const int (&batch)[3], int m, int n) const
    {
        const int head = (batch[0] * (int)shape.batch[1] + batch[1]) * (int)shape.batch[2] + batch[2];
        const long long word = (long long)head * words(shape) + min(n / 32, words(shape) - 1);
        return bits + (word * rows(shape) + min(m, rows(shape) - 2 + m % 2));
    }

    __device__ __forceinline__ float operator()(const int (&batch)[3], float weight, int m, int n) const
    {
        return weight * (*at(batch, m, n) >> n % 32 & 1 ? scale : 0.0f);
    }
};

template <class WEIGHT> struct fuse_is_kept { static constexpr bool IS = false; };
template <> struct fuse_is_kept<fuse_kept> { static constexpr bool IS = true; };

// Draws all of that, a word a thread: `draw_word` gives the one of a query and 32 keys.
template <class WORD> static __device__ __forceinline__ void fuse_draw_words(const WORD& draw_word, unsigned* to, const fuse_attention_shape& shape)
{
    const int rows = fuse_kept::rows(shape), words = fuse_kept::words(shape);
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x, word = at / rows;
    const int head = (int)(word / words), m = min((int)(at % rows), (int)shape.m - 1), n = (int)(word % words) * 32;
    if (head >= shape.heads) return;
    const int b2 = (int)shape.batch[2], b1 = (int)shape.batch[1], batch[3] = {head / b2 / b1, head / b2 % b1, head % b2};
    to[at] = draw_word(batch, m, n);
}

// `keep` is asked for four neighbours along a row, each with its number.
template <class KEEP> static __device__ __forceinline__ unsigned fuse_word_of(const KEEP& keep, const int (&batch)[3], int m, int n, int last)
{
    unsigned bits = 0;
#pragma unroll 1
    for (int j = 0; j < 32; j += 4)
#pragma unroll
        for (int k = 0; k < 4; ++k) bits |= (unsigned)(keep(batch, m, min(n + j + k, last), k) ? 1 : 0) << (j + k);
    return bits;
}

template <class KEEP> static __device__ __forceinline__ void fuse_draw_kept(const KEEP& keep, unsigned* to, const fuse_attention_shape& shape)
{
    fuse_draw_words([&](const int (&batch)[3], int m, int n) { return fuse_word_of(keep, batch, m, n, (int)shape.n - 1); }, to, shape);
}

// The same where a weight is kept if the draw at its place reaches something: neighbours along a row are words of one counter after the
// other, also those behind its end, which nobody asks for.
template <class DRAW, class PLACE, class KEEP>
static __device__ __forceinline__ void fuse_draw_kept(const DRAW& draw, unsigned least, const PLACE& place, const KEEP& keep, unsigned* to,
                                                      const fuse_attention_shape& shape)
{
    fuse_draw_words([&](const int (&batch)[3], int m, int n) {
        const long long first = place(batch, m, n);
        const bool is_run = DRAW::IS_RUN && (first & 3) == 0;
        return is_run ? draw.reaching(first, least) : fuse_word_of(keep, batch, m, n, (int)shape.n - 1);
    }, to, shape);
}

// A program of a weight is run place by place. What is looked up is settled when it is needed.
template <int N, bool TURNED, class WEIGHT> struct fuse_multipliers {
    const WEIGHT& weight;

    __device__ __forceinline__ void look(const int (&)[3], int, int, int, int) {}
    __device__ __forceinline__ void settle(int) {}

    __device__ __forceinline__ float apply(const int (&batch)[3], int, float x, int m, int n) const { return weight(batch, x, m, n); }
};

// What is kept is looked up before it is needed, one bit a place: four neighbours along a row share a draw, so each of the threads
// that have them asks for all four of some rows, and they exchange what they know.
template <int N, bool TURNED, class KEEP> struct fuse_multipliers<N, TURNED, fuse_drops<KEEP>> {
    static constexpr int SHARERS = TURNED ? 4 : 2, WORDS = (N + 31) / 32;
    static_assert(N % 4 == 0, "of every eight two, in two lines");
    const fuse_drops<KEEP>& drops;
    unsigned kept[SHARERS][WORDS];

    __device__ __forceinline__ void settle(int) {}

    // From query m and key n on, which are the first that the thread has; the last ones that are.
    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int last_m, int last_n)
    {
        const int lane = threadIdx.x % 32, own = TURNED ? lane / 4 % 4 : lane % 2;
        const int row = m + (TURNED ? own % 2 : own * 8), first = TURNED ? n - own + own / 2 * 8 : n - own * 2;
#pragma unroll
        for (int word = 0; word < WORDS; ++word) {
            unsigned bits = 0;
#pragma unroll 1
            for (int j = 0; j < min(8, N / 4 - 8 * word); ++j) {
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

// Of two queries a thread has every word of its keys.
template <int N> struct fuse_multipliers<N, false, fuse_kept> {
    static constexpr int WORDS = (N + 15) / 16;
    const fuse_kept& kept;
    unsigned words[2][WORDS];

    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int, int)
    {
        const int first = n - threadIdx.x % 4 * 2;
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int k = 0; k < WORDS; ++k) words[r][k] = *kept.at(batch, m + 8 * r, first + 32 * k) >> (N < 16 ? first % 32 : 0);
    }
    __device__ __forceinline__ void settle(int) {}

    __device__ __forceinline__ float apply(const int (&)[3], int i, float x, int, int) const
    {
        const unsigned bits = words[i / 2 % 2][i / 16] >> threadIdx.x % 4 * 2;
        return x * (bits >> (i / 4 % 4 * 8 + i % 2) & 1 ? kept.scale : 0.0f);
    }
};

// Of two keys eight apart a thread has a word of every query, of which two bits are theirs.
template <int N> struct fuse_multipliers<N, true, fuse_kept> {
    static_assert(N <= 32, "a word of bits");
    const fuse_kept& kept;
    uint2 words[N / 4];
    unsigned own;

    __device__ __forceinline__ void look(const int (&batch)[3], int m, int n, int, int)
    {
#pragma unroll
        for (int j = 0; j < N / 4; ++j) words[j] = *(const uint2*)kept.at(batch, m + 8 * j, n);
    }

    // From key n on.
    __device__ __forceinline__ void settle(int n)
    {
        own = 0;
#pragma unroll
        for (int j = 0; j < N / 4; ++j) {
            const int to = j % 4 * 2 + j / 4 * 16;
            own |= (words[j].x >> n % 32 & 0x101u) << to | (words[j].y >> n % 32 & 0x101u) << (to + 1);
        }
    }

    __device__ __forceinline__ float apply(const int (&)[3], int i, float x, int, int) const
    {
        const int bit = i / 4 % 4 * 2 + i % 2 + i / 16 * 16 + i / 2 % 2 * 8;
        return x * (own >> bit & 1 ? kept.scale : 0.0f);
    }
};

// One of two, where they are alike.
template <class A> static __device__ __forceinline__ const A& fuse_first_if_same(const A& first, const A&) { return first; }
template <class A, class B> static __device__ __forceinline__ const B& fuse_first_if_same(const A&, const B& other) { return other; }
#endif
