// Philox 4x32-10 (Salmon et al., 2011): the four words of one counter.
static __device__ __forceinline__ void fuse_philox(unsigned (&words)[4], unsigned long long seed, unsigned long long counter)
{
    unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
    unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ key0;
        c1 = low1;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

// One random draw at N points of an access, STEP apart. Element i is word i % 4 of counter offset + i / 4; neighbours share it.
template <int N, int STEP> struct fuse_draw {
    static constexpr bool IS_RUN = N >= 4 && STEP == 1;
    unsigned long long seed, offset, counter;
    unsigned words[N < 4 ? 1 : N / 4][4];
    bool together;

    __device__ __forceinline__ fuse_draw(unsigned long long seed, unsigned long long offset)
        : seed(seed), offset(offset), counter(~0ull), together(false) {}

    // Elements are counted from 0 on.
    __device__ __forceinline__ unsigned long long counter_of(long long i) const { return offset + ((unsigned long long)i >> 2); }

    // The words of an access from element i on, if they are all of some counters.
    __device__ __forceinline__ void meet(long long i)
    {
        together = (i & 3) == 0;
#pragma unroll
        for (int k = 0; k < N / 4; ++k) if (together) fuse_philox(words[k], seed, counter_of(i) + k);
    }

    // The same if the first and the last of them are not. That is rare, so it is short: epilogues repeat it for many accesses, and long
    // ones do not stay in the cache of instructions.
    __device__ __forceinline__ void meet_apart(long long i)
    {
#pragma unroll 1
        for (int k = 0; k <= N / 4; ++k) {
            unsigned own[4];
            fuse_philox(own, seed, counter_of(i) + k);
#pragma unroll
            for (int v = 0; v < N; ++v) {
                const int at = (int)(i & 3) + v - 4 * k;
                if (at >= 0 && at < 4) words[v / 4][v % 4] = pick(own, at);
            }
        }
    }

    static __device__ __forceinline__ unsigned pick(const unsigned (&of)[4], int k)
    {
        return k < 2 ? (k == 0 ? of[0] : of[1]) : (k == 2 ? of[2] : of[3]);
    }

    // The counter of element i, in the first words.
    __device__ __forceinline__ void meet_alone(long long i)
    {
        const unsigned long long wanted = counter_of(i);
        if (wanted != counter) fuse_philox(words[0], seed, wanted);
        counter = wanted;
    }

    // The word of element i, which is point v of the access.
    __device__ __forceinline__ unsigned word(long long i, int v)
    {
        if (IS_RUN && v == 0) {
            meet(i);
            if (!together) meet_apart(i);
        }
        if (!IS_RUN) meet_alone(i);
        return IS_RUN ? words[v / 4][v % 4] : pick(words[0], (int)(i & 3));
    }

    __device__ __forceinline__ float uniform(long long i, int v) { return (float)(word(i, v) >> 8) * 5.9604644775390625e-08f; }

    // Whether that number is at least one whose word is the least there is.
    __device__ __forceinline__ bool reaches(long long i, int v, unsigned least) { return word(i, v) >= least; }

    // Which of 32 elements, from one on that is the first of a counter, reach it.
    __device__ __forceinline__ unsigned reaching(long long i, unsigned least) const
    {
        unsigned bits = 0;
        const unsigned long long first = counter_of(i);
#pragma unroll 2
        for (int k = 0; k < 8; ++k) {
            unsigned own[4];
            fuse_philox(own, seed, first + k);
            bits >>= 4;
#pragma unroll
            for (int v = 0; v < 4; ++v) bits |= own[v] >= least ? 1u << (28 + v) : 0u;
        }
        return bits;
    }

    // Box-Muller over a pair of words in double: even elements take the cosine, odd ones the sine.
    __device__ __forceinline__ float normal(long long i, int v)
    {
        if (IS_RUN && v == 0) meet(i);
        if (!together) meet_alone(i);
        const int k = together ? v & 3 : (int)(i & 3), of = N < 4 ? 0 : v / 4;
        const unsigned* own = together ? words[of] : words[0];
        const double first = k < 2 ? own[0] : own[2], second = k < 2 ? own[1] : own[3];
        const double radius = sqrt(-2.0 * log((first + 1.0) * 2.3283064365386963e-10));
        const double angle = 6.283185307179586 * (second * 2.3283064365386963e-10);
        return (float)(radius * ((k & 1) == 0 ? cos(angle) : sin(angle)));
    }
};
