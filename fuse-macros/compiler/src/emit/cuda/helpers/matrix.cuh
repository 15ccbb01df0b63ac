// Strides of a matrix: batch axes, then its two axes.
struct fuse_matrix { long long axis[5]; };
// Extents of a product: batch axes, rows, columns, inner extent.
struct fuse_shape { long long batch[3], m, n, k; };

static __device__ __forceinline__ fuse_at<3> fuse_batch_of(long long n, const fuse_shape& shape)
{
    const long long two = n / shape.batch[2], one = two / shape.batch[1];
    return {one, two - one * shape.batch[1], n - two * shape.batch[2]};
}

static __device__ __forceinline__ long long fuse_batch(const fuse_at<3>& batch, const fuse_matrix& strides)
{
    return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
}

static __device__ __forceinline__ float fuse_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fuse_multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
static __device__ __forceinline__ int fuse_multiply_add(int a, int b, int c)
{
    return (int)((unsigned)a * (unsigned)b + (unsigned)c);
}
static __device__ __forceinline__ long long fuse_multiply_add(long long a, long long b, long long c)
{
    return (long long)((unsigned long long)a * (unsigned long long)b + (unsigned long long)c);
}
static __device__ __forceinline__ unsigned char fuse_multiply_add(unsigned char a, unsigned char b, unsigned char c)
{
    return (unsigned char)(a * b + c);
}

// Loads a tile of 16 by 64 of a matrix; elements outside are 0. Neighbouring threads go along the axis that lies dense in memory.
template <class T, class A>
static __device__ __forceinline__ void fuse_load_tile(
    A (&tile)[16][65], const T* from, long long k0, long long k_end, long long k_stride, long long x0, long long x_end, long long x_stride)
{
    const bool along_k = k_stride == 1;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const int n = step * 256 + threadIdx.x;
        const int k = along_k ? n % 16 : n / 64, x = along_k ? n / 16 : n % 64;
        const bool inside = k0 + k < k_end && x0 + x < x_end;
        tile[k][x] = inside ? fuse_to_compute(from[(k0 + k) * k_stride + (x0 + x) * x_stride]) : A(0);
    }
}

// The product of a 64 by 64 tile: thread (ty, tx) of 16 by 16 has rows ty + 16 i and columns tx + 16 j. Inner positions ascend.
template <class T, class A>
static __device__ __forceinline__ void fuse_multiply_tile(
    A (&product)[4][4], const T* a, const fuse_matrix& a_strides, const T* b, const fuse_matrix& b_strides,
    const fuse_shape& shape, long long m0, long long n0)
{
    __shared__ A a_tile[16][65], b_tile[16][65];
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    for (long long k0 = 0; k0 < shape.k; k0 += 16) {
        fuse_load_tile(a_tile, a, k0, shape.k, a_strides.axis[4], m0, shape.m, a_strides.axis[3]);
        fuse_load_tile(b_tile, b, k0, shape.k, b_strides.axis[3], n0, shape.n, b_strides.axis[4]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            A left[4], right[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) left[i] = a_tile[k][ty + 16 * i];
#pragma unroll
            for (int j = 0; j < 4; ++j) right[j] = b_tile[k][tx + 16 * j];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) product[i][j] = fuse_multiply_add(left[i], right[j], product[i][j]);
        }
        __syncthreads();
    }
}
