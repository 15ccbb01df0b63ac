// A float of 8 bits, 4 of them exponent and 3 mantissa, computed in float. There are no infinities: what is too large is NaN.
struct fuse_e4m3 { unsigned char bits; };

static __device__ __forceinline__ float fuse_to_compute(fuse_e4m3 x)
{
#if __CUDA_ARCH__ >= 890
    float wide;
    asm("{\n.reg .b32 both;\n.reg .b16 low, high;\ncvt.rn.f16x2.e4m3x2 both, %1;\nmov.b32 {low, high}, both;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(wide) : "h"((unsigned short)x.bits));
    return wide;
#else
    // The product moves the exponent's bias and normalises subnormals.
    const float magnitude = __uint_as_float((x.bits & 0x7fu) << 20) * __uint_as_float(247u << 23);
    return copysignf((x.bits & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000u) : magnitude, x.bits < 128 ? 1.0f : -1.0f);
#endif
}

// To nearest, ties to even.
static __device__ __forceinline__ fuse_e4m3 fuse_to_e4m3(float x)
{
    const unsigned bits = __float_as_uint(x), magnitude = bits & 0x7fffffff;
    unsigned nearest;
#if __CUDA_ARCH__ >= 890
    unsigned short both;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(0.0f), "f"(__uint_as_float(magnitude)));
    nearest = both;
#else
    // Below the normal numbers an addition shifts and rounds the mantissa.
    nearest = magnitude < 121u << 23 ? __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(141u << 23)) - (141u << 23)
                                     : (magnitude - (120u << 23) + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
#endif
    // The instruction gives the largest value for what is beyond 464, where the next one would begin.
    return {(unsigned char)((magnitude > 0x43e80000u ? 0x7f : nearest) | bits >> 24 & 0x80)};
}
