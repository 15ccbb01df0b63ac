template <> struct fuse_element<fuse_e4m3> {
    static __device__ __forceinline__ fuse_e4m3 of(float x) { return fuse_to_e4m3(x); }
    static __device__ __forceinline__ fuse_e4m3 of_bits(unsigned bits) { return {(unsigned char)bits}; }
    static __device__ __forceinline__ unsigned bits(fuse_e4m3 x) { return x.bits; }
    static __device__ __forceinline__ float rounded(float x) { return fuse_to_compute(fuse_to_e4m3(x)); }
    static constexpr bool IN_PAIRS = false;
};
