template <> struct fuse_element<fuse_f16> {
    static __device__ __forceinline__ fuse_f16 of(float x) { return fuse_to_f16(x); }
    static __device__ __forceinline__ fuse_f16 of_bits(unsigned bits) { return {(unsigned short)bits}; }
    static __device__ __forceinline__ unsigned bits(fuse_f16 x) { return x.bits; }
    static __device__ __forceinline__ float rounded(float x) { return fuse_to_compute(fuse_to_f16(x)); }

#if __CUDA_ARCH__ >= 800
    static constexpr bool IN_PAIRS = true;
    static __device__ __forceinline__ unsigned pair(float low, float high)
    {
        unsigned both;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
#else
    static constexpr bool IN_PAIRS = false;
#endif
};
