// The values of N neighbouring points of a tensor whose elements are their own positions.
template <int N>
static __device__ __forceinline__ void fuse_count(long long (&to)[N], long long from, IDX stride, int live = N)
{
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = from + (k < live ? k * (long long)stride : 0);
}
