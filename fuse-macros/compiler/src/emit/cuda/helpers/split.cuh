// Joins the chunks of one row, at most 1024, in the lanes' tree; called by all 256 threads of a block.
template <class R> static __device__ __forceinline__ typename R::Acc fuse_join_chunks(const typename R::Acc* chunk, int chunks)
{
    fuse_lanes<R, 256, 4, 1> lanes;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
        const int c = threadIdx.x * 4 + v;
        if (c < chunks) lanes.lane[0][v] = fuse_fresh(chunk + c);
    }
    return lanes.total();
}
