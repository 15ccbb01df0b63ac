// A square tile of points of the last two axes, at one place of the axes before them. The last extent counts accesses.
template <int N, int SIDE> struct fuse_tile {
    fuse_at<N> first;
    IDX before, last;

    __device__ __forceinline__ fuse_tile(IDX n, const fuse_extents<N>& extents)
        : before(extents.axis[N - 2].extent), last(extents.axis[N - 1].extent * VEC)
    {
        const IDX across = (last + SIDE - 1) / SIDE, down = (before + SIDE - 1) / SIDE;
        first.axis[N - 1] = n % across * SIDE;
        first.axis[N - 2] = n / across % down * SIDE;
        n = n / across / down;
#pragma unroll
        for (int k = N - 3; k > 0; --k) {
            first.axis[k] = n % extents.axis[k].extent;
            n /= extents.axis[k].extent;
        }
        if (N > 2) first.axis[0] = n;
    }

    __device__ __forceinline__ fuse_at<N> at(int x, int y) const
    {
        fuse_at<N> place = first;
        place.axis[N - 1] += x;
        place.axis[N - 2] += y;
        return place;
    }

    __device__ __forceinline__ bool has(const fuse_at<N>& place) const
    {
        return place.axis[N - 1] < last && place.axis[N - 2] < before;
    }
};
