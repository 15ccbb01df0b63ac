template <> struct fuse_element<fuse_f16> { static __device__ __forceinline__ fuse_f16 of(float x) { return fuse_to_f16(x); } };
