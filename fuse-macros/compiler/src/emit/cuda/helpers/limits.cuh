template <class T> struct fuse_limits;
template <> struct fuse_limits<float> {
    static constexpr bool is_float = true;
    static __device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }
    static __device__ __forceinline__ float highest() { return __int_as_float(0x7f800000); }
};
template <> struct fuse_limits<double> {
    static constexpr bool is_float = true;
    static __device__ __forceinline__ double lowest() { return __longlong_as_double(0xfff0000000000000ll); }
    static __device__ __forceinline__ double highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct fuse_limits<long long> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ long long lowest() { return -0x7fffffffffffffffll - 1; }
    static __device__ __forceinline__ long long highest() { return 0x7fffffffffffffffll; }
};
template <> struct fuse_limits<int> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ int lowest() { return -0x7fffffff - 1; }
    static __device__ __forceinline__ int highest() { return 0x7fffffff; }
};
template <> struct fuse_limits<unsigned char> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ unsigned char lowest() { return 0; }
    static __device__ __forceinline__ unsigned char highest() { return 255; }
};
template <> struct fuse_limits<bool> {
    static constexpr bool is_float = false;
    static __device__ __forceinline__ bool lowest() { return false; }
    static __device__ __forceinline__ bool highest() { return true; }
};
