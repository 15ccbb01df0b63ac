// The distance of element `e` of a row from its first one.
template <int OUTER, int INNER, int M>
static __device__ __forceinline__ IDX fuse_along(IDX e, const fuse_extents<INNER>& inner, const fuse_strides<M>& strides)
{
    if constexpr (INNER == 1) return e * strides.axis[OUTER];
    else return fuse_offset<OUTER>(fuse_unravel(e, inner), strides);
}
