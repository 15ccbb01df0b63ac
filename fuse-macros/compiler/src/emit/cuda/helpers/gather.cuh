template <class T>
static __device__ __forceinline__ T fuse_gather(
    const T* from, const fuse_axis& axis, long long index, fuse_fault* fault, unsigned long long call, unsigned op)
{
    if (index >= 0 && index < axis.extent) return from[index * axis.stride];
    fuse_note(fault, call, 1, op, index, axis.extent);
    return T();
}
