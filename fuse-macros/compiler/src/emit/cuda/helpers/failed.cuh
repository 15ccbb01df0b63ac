// Whether a kernel of this call has met a fault. All threads of a block hear the same, though others may note one just now.
static __device__ __forceinline__ bool fuse_failed(const unsigned long long* failed, unsigned long long call)
{
    __shared__ bool is_so;
    if (threadIdx.x == 0) is_so = ((const volatile unsigned long long*)failed)[call % 32] == call;
    __syncthreads();
    return is_so;
}
