// Philox 4x32-10 (Salmon et al., 2011). Element i of a draw is word i % 4 of block offset + i / 4; neighbours share a block.
struct fuse_draw {
    unsigned long long seed, offset, block;
    unsigned words[4];

    __device__ __forceinline__ fuse_draw(unsigned long long seed, unsigned long long offset)
        : seed(seed), offset(offset), block(~0ull) {}

    __device__ __forceinline__ void load(long long i)
    {
        const unsigned long long wanted = offset + (unsigned long long)i / 4;
        if (wanted == block) return;
        block = wanted;
        unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
        unsigned c0 = (unsigned)wanted, c1 = (unsigned)(wanted >> 32), c2 = 0, c3 = 0;
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

    __device__ __forceinline__ unsigned word(int k) const
    {
        return k < 2 ? (k == 0 ? words[0] : words[1]) : (k == 2 ? words[2] : words[3]);
    }

    __device__ __forceinline__ float uniform(long long i)
    {
        load(i);
        return (float)(word((int)(i & 3)) >> 8) * 5.9604644775390625e-08f;
    }

    // Box-Muller over a pair of words in double: even elements take the cosine, odd ones the sine.
    __device__ __forceinline__ float normal(long long i)
    {
        load(i);
        const bool upper = (i & 2) != 0;
        const double first = upper ? words[2] : words[0], second = upper ? words[3] : words[1];
        const double radius = sqrt(-2.0 * log((first + 1.0) * 2.3283064365386963e-10));
        const double angle = 6.283185307179586 * (second * 2.3283064365386963e-10);
        return (float)(radius * ((i & 1) == 0 ? cos(angle) : sin(angle)));
    }
};
