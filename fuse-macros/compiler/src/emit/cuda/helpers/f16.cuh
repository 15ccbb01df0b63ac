// IEEE half precision, computed in float.
struct fuse_f16 { unsigned short bits; };

static __device__ __forceinline__ float fuse_to_compute(fuse_f16 x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

static __device__ __forceinline__ fuse_f16 fuse_to_f16(float x)
{
    fuse_f16 narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
    return narrow;
}
