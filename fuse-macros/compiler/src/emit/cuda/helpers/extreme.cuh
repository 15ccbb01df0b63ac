// Whether a goes before b in the order -inf < .. < -0 < +0 < .. < inf.
static __device__ __forceinline__ bool fuse_below(float a, float b)
{
    return a < b || (a == b && __float_as_int(a) < 0 && __float_as_int(b) >= 0);
}

static __device__ __forceinline__ bool fuse_below(double a, double b)
{
    return a < b || (a == b && __double_as_longlong(a) < 0 && __double_as_longlong(b) >= 0);
}

static __device__ __forceinline__ bool fuse_below(long long a, long long b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(int a, int b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(unsigned char a, unsigned char b) { return a < b; }
static __device__ __forceinline__ bool fuse_below(bool a, bool b) { return !a && b; }

// The larger and the smaller of two; NaN wins in either direction.
template <class V> static __device__ __forceinline__ V fuse_larger(V a, V b)
{
    return a != a || !(b != b || fuse_below(a, b)) ? a : b;
}

template <class V> static __device__ __forceinline__ V fuse_smaller(V a, V b)
{
    return a != a || !(b != b || fuse_below(b, a)) ? a : b;
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float fuse_larger(float a, float b)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

static __device__ __forceinline__ float fuse_smaller(float a, float b)
{
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
}
#endif

template <class V> struct fuse_largest {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return fuse_limits<V>::lowest(); }
    static __device__ __forceinline__ Acc of(V x, long long) { return x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_larger(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};

template <class V> struct fuse_smallest {
    using Acc = V;
    static __device__ __forceinline__ Acc none() { return fuse_limits<V>::highest(); }
    static __device__ __forceinline__ Acc of(V x, long long) { return x; }
    static __device__ __forceinline__ Acc join(Acc a, Acc b) { return fuse_smaller(a, b); }
    static __device__ __forceinline__ Acc value(Acc a) { return a; }
};
