#if __CUDA_ARCH__ >= 800
template <int SIZE, int L, int R>
struct fuse_product<fuse_f16, SIZE, L, R> : fuse_tensor_product<fuse_f16, SIZE, L, R> {};
#endif
