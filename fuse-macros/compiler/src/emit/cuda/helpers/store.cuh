// From the compute type to the element type T, to nearest and ties to even.
template <class T> struct fuse_element { template <class C> static __device__ __forceinline__ T of(C x) { return x; } };
