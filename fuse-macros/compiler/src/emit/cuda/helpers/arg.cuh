// A value and where it was found; of equal ones (-0 and +0 are) the first, of NaNs the first.
template <class V> struct alignas(16) fuse_found { V value; long long index; };

template <class V, bool LARGEST> struct fuse_arg {
    using Acc = fuse_found<V>;
    static __device__ __forceinline__ Acc none() { return Acc{V(), 0x7fffffffffffffffll}; }
    static __device__ __forceinline__ Acc of(V x, long long index) { return Acc{x, index}; }

    static __device__ __forceinline__ bool before(const Acc& a, const Acc& b)
    {
        if (a.index == none().index || b.index == none().index) return a.index < b.index;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan || b_nan) return a_nan && b_nan ? a.index < b.index : a_nan;
        if (a.value != b.value) return LARGEST ? a.value > b.value : a.value < b.value;
        return a.index < b.index;
    }

    static __device__ __forceinline__ Acc join(const Acc& a, const Acc& b) { return before(a, b) ? a : b; }
    static __device__ __forceinline__ long long value(const Acc& a) { return a.index == none().index ? 0 : a.index; }
};
