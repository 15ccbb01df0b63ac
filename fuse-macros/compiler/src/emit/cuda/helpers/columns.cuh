// The canonical column order: chunks of at most 256, each of a multiple of 256 rows.
static __device__ __forceinline__ long long fuse_chunk_rows(long long rows)
{
    long long chunks = (rows + 255) / 256;
    if (chunks < 1) chunks = 1;
    if (chunks > 256) chunks = 256;
    const long long chunk = ((rows + chunks - 1) / chunks + 255) / 256 * 256;
    return chunk < 256 ? 256 : chunk;
}

// Joins the 8 lanes of every column of a tile in a tree of strides 1, 2, 4; every lane's thread gets the value.
template <class R, int PER>
static __device__ __forceinline__ void fuse_join_lanes(typename R::Acc (&lane)[PER])
{
    using Acc = typename R::Acc;
    __shared__ alignas(16) unsigned char bytes[sizeof(Acc) * 8 * 32 * PER];
    Acc* all = (Acc*)bytes;
    __syncthreads();
#pragma unroll
    for (int v = 0; v < PER; ++v) all[v * 256 + threadIdx.x] = lane[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < PER; ++v) {
        Acc of[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) of[k] = all[v * 256 + k * 32 + threadIdx.x % 32];
#pragma unroll
        for (int s = 1; s < 8; s *= 2)
#pragma unroll
            for (int k = 0; k + s < 8; k += 2 * s) of[k] = R::join(of[k], of[k + s]);
        lane[v] = of[0];
    }
}

// Joins the chunks of a tile's columns, which lie `columns` apart; of each thread several are read at once.
template <class R, int PER>
static __device__ __forceinline__ void fuse_join_columns(
    typename R::Acc (&value)[PER], const typename R::Acc* chunk, int chunks, long long columns, bool live)
{
    struct alignas(sizeof(typename R::Acc) * PER < 16 ? sizeof(typename R::Acc) * PER : 16) Some { typename R::Acc of[PER]; };
    constexpr int AHEAD = sizeof(Some) > 16 ? 2 : 4;
#pragma unroll
    for (int v = 0; v < PER; ++v) value[v] = R::none();
    for (int first = threadIdx.x / 32; live && first < chunks; first += 8 * AHEAD) {
        Some ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (first + 8 * k < chunks) ahead[k] = fuse_fresh((const Some*)(chunk + (first + 8 * k) * columns));
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
#pragma unroll
            for (int v = 0; v < PER; ++v)
                if (first + 8 * k < chunks) value[v] = R::join(value[v], ahead[k].of[v]);
    }
    fuse_join_lanes<R>(value);
}
