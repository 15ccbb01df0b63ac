// The divisor of an integer division; 0 is noted, and the division then gives 0.
template <class T>
static __device__ __forceinline__ T fuse_divisor_of(T dividend, T divisor, fuse_fault* fault, unsigned long long call, unsigned op)
{
    if (divisor == 0) fuse_note(fault, call, 2, op, dividend, 0);
    return divisor;
}
