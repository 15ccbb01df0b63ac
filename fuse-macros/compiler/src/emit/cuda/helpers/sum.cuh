// Reductions: what a lane carries, the neutral element, how lanes join, and the value at the end.
static __device__ __forceinline__ float fuse_plus(float a, float b) { return a + b; }
static __device__ __forceinline__ double fuse_plus(double a, double b) { return a + b; }
static __device__ __forceinline__ long long fuse_plus(long long a, long long b)
{
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

template <class V> struct fuse_sum {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return 0; }
    template <class X> static __device__ __forceinline__ Acc of(X x, long long) { return (Acc)x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_plus(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};
