template <> struct fuse_element<fuse_bf16> { static __device__ __forceinline__ fuse_bf16 of(float x) { return fuse_to_bf16(x); } };
