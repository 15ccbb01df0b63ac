template <class A, class B> struct fuse_same { static constexpr bool value = false; };
template <class A> struct fuse_same<A, A> { static constexpr bool value = true; };

// Rust's `as`: truncates, saturates, turns NaN into 0, wraps between integers; to bool it asks for non-zero.
template <class To, class From> static __device__ __forceinline__ To fuse_cast(From x)
{
    if constexpr (fuse_same<To, bool>::value) {
        return x != (From)0;
    } else if constexpr (fuse_limits<From>::is_float && !fuse_limits<To>::is_float) {
        if (x != x) return 0;
        if (x <= (From)fuse_limits<To>::lowest()) return fuse_limits<To>::lowest();
        if (x >= (From)fuse_limits<To>::highest()) return fuse_limits<To>::highest();
        return (To)x;
    } else {
        return (To)x;
    }
}
