// Two floats as pairs of bfloat16, the low one first.
static __device__ __forceinline__ unsigned fuse_bf16_pair(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// The parts of pair number `at`.
template <int N> static __device__ __forceinline__ void fuse_third_pair(unsigned (&parts)[3][N], int at, float low, float high)
{
#pragma unroll
    for (int part = 0; part < 3; ++part) {
        const unsigned pair = parts[part][at] = fuse_bf16_pair(low, high);
        low -= __uint_as_float(pair << 16);
        high -= __uint_as_float(pair & 0xffff0000u);
    }
}
