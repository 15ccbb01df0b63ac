#if __CUDA_ARCH__ >= 800
// As f16, in which e4m3 is exact.
template <int N> static __device__ __forceinline__ fuse_pack<fuse_f16, N> fuse_as_halves(const fuse_pack<fuse_e4m3, N>& pack)
{
    fuse_pack<fuse_f16, N> wide;
#pragma unroll
    for (int n = 0; n < N; n += 2) {
#if __CUDA_ARCH__ >= 890
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide.word[n / 2]) : "h"((unsigned short)(pack.word[n / 4] >> n % 4 * 8)));
#else
        wide.word[n / 2] = fuse_element<fuse_f16>::pair(fuse_to_compute(pack[n]), fuse_to_compute(pack[n + 1]));
#endif
    }
    return wide;
}

template <int SIZE, int L, int R>
struct fuse_product<fuse_e4m3, SIZE, L, R> : fuse_tensor_product<fuse_e4m3, SIZE, L, R, fuse_f16> {};
#endif
