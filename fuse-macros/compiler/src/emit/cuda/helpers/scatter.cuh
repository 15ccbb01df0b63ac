// The place of a scatter, or null and a note where the index is out of range.
template <class T>
static __device__ __forceinline__ T* fuse_target(
    T* to, const fuse_axis& axis, long long index, fuse_fault* fault, unsigned long long call, unsigned op)
{
    if (index >= 0 && index < axis.extent) return to + index * axis.stride;
    fuse_note(fault, call, 1, op, index, axis.extent);
    return 0;
}
