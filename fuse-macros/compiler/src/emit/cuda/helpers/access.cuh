template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) fuse_pack { T of[N]; };

// Reads N neighbouring points. STEP says how far apart they are: 0 the same element, 1 the next, 2 `stride` elements on.
// Points from `live` on do not exist and repeat the first one.
template <int STEP, int N, class T>
static __device__ __forceinline__ void fuse_read(T (&to)[N], const T* from, IDX stride, int live = N)
{
    if (STEP == 1 && live == N) {
        const fuse_pack<T, N> pack = *(const fuse_pack<T, N>*)from;
#pragma unroll
        for (int k = 0; k < N; ++k) to[k] = pack.of[k];
    } else {
        if (STEP < 2) stride = STEP;
        to[0] = from[0];
#pragma unroll
        for (int k = 1; k < N; ++k) to[k] = STEP > 0 && k < live ? from[k * stride] : to[0];
    }
}

template <int STEP, int N, class T>
static __device__ __forceinline__ void fuse_write(T* to, const T (&from)[N], IDX stride, int live = N)
{
    if (STEP == 1 && live == N) {
        fuse_pack<T, N> pack;
#pragma unroll
        for (int k = 0; k < N; ++k) pack.of[k] = from[k];
        *(fuse_pack<T, N>*)to = pack;
    } else {
        if (STEP < 2) stride = STEP;
        to[0] = from[0];
#pragma unroll
        for (int k = 1; k < N; ++k) if (k < live) to[k * stride] = from[k];
    }
}
