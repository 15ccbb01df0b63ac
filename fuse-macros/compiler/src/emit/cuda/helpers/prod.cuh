static __device__ __forceinline__ float fuse_times(float a, float b) { return a * b; }
static __device__ __forceinline__ double fuse_times(double a, double b) { return a * b; }
static __device__ __forceinline__ long long fuse_times(long long a, long long b)
{
    return (long long)((unsigned long long)a * (unsigned long long)b);
}

template <class V> struct fuse_prod {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return 1; }
    template <class X> static __device__ __forceinline__ Acc of(X x, long long) { return (Acc)x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_times(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};
