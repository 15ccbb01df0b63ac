// What a block computes of a product, STEP inner positions at a time. Each takes whole tiles in turn as long as there is one for all of
// them; what remains they share: of all steps of the last tiles one block has as many as any other, so that no multiprocessor
// waits for the others (Osama et al., "Stream-K", 2023). Without memory for parts of tiles all are taken whole.
template <class PART, int STEP, bool SHARED> struct fuse_shares {
    float* parts;
    // The next whole tile and how many those are, steps of the others from the next one to the end of this block's, all of them, and
    // those of a tile.
    unsigned tile, whole;
    int at, end, all, steps;

    __device__ __forceinline__ fuse_shares(const fuse_shape& shape, float* parts)
        : parts(parts), tile(blockIdx.x), steps(max((int)((shape.k + STEP - 1) / STEP), 1))
    {
        const unsigned count = PART::count(shape);
        whole = parts ? count - count % gridDim.x : count;
        all = (int)(count - whole) * steps;
        at = (int)((long long)all * blockIdx.x / gridDim.x);
        end = (int)((long long)all * (blockIdx.x + 1) / gridDim.x);
        settle_on();
    }

    // Behind the whole tiles the next one is that of the next step.
    __device__ __forceinline__ void settle_on() { if (tile >= whole) tile = whole + at / steps; }
    __device__ __forceinline__ bool is_whole() const { return tile < whole || last() - first() == steps; }
    __device__ __forceinline__ bool more() const { return tile < whole || at < end; }
    __device__ __forceinline__ void next()
    {
        if (tile < whole) tile += gridDim.x;
        else at += last() - first();
        settle_on();
    }

    // The share of this tile, in steps.
    __device__ __forceinline__ int first() const { return tile < whole ? 0 : at % steps; }
    __device__ __forceinline__ int last() const { return tile < whole ? steps : min(first() + end - at, steps); }

    template <class T> __device__ __forceinline__ fuse_side<T> of(const fuse_side<T>& side) const
    {
        const long long from = (long long)first() * STEP, to = min((long long)last() * STEP, side.k_end);
        return {side.from + from * side.k_stride, side.x_stride, side.k_stride, side.x_end, to - from};
    }

    template <class T, int N> __device__ __forceinline__ fuse_sides<T, N> of(fuse_sides<T, N> sides) const
    {
        const fuse_side<T> side = of(sides[0]);
        const long long to = side.from - sides.from[0];
#pragma unroll
        for (int n = 0; n < N; ++n) sides.from[n] += to;
        sides.k_end = side.k_end;
        return sides;
    }

    // The block that has a step of the shared tiles.
    __device__ __forceinline__ int owner(int step) const { return (int)((((long long)step + 1) * gridDim.x - 1) / all); }

    // Puts down what this warp, one of eight, has of a tile; whether it is the last of those that have some of it, and now has the
    // sum, which is always made in the same order. Then what it has counted is 0 again.
    template <int N> __device__ __forceinline__ bool settle(float (&product)[N], unsigned* counters) const
    {
        if (is_whole()) return true;
        const int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, number = (int)(tile - whole);
        const int begin = number * steps, first = owner(begin), owners = owner(begin + steps - 1) - first + 1;
        // As many as a tile may have.
        const int most = (int)((long long)gridDim.x * steps / all) + 2;
        const auto part = [&](int of) { return (float4*)parts + (((long long)number * most + of) * 8 + warp) * (N / 4 * 32) + lane; };
        float4* const own = part(blockIdx.x - first);
#pragma unroll
        for (int j = 0; j < N; j += 4) __stcg(own + j * 8, make_float4(product[j], product[j + 1], product[j + 2], product[j + 3]));
        __threadfence();
        __syncwarp();
        unsigned before = 0;
        if (lane == 0) before = atomicAdd(counters + number * 8 + warp, 1u);
        if (__shfl_sync(~0u, before, 0) != owners - 1) return false;
        if (lane == 0) counters[number * 8 + warp] = 0;
        __threadfence();
#pragma unroll
        for (int j = 0; j < N; ++j) product[j] = 0.0f;
#pragma unroll 1
        for (int k = 0; k < owners; ++k) {
            const float4* const other = part(k);
#pragma unroll
            for (int j = 0; j < N; j += 4) {
                const float4 more = __ldcg(other + j * 8);
                product[j] += more.x, product[j + 1] += more.y, product[j + 2] += more.z, product[j + 3] += more.w;
            }
        }
        return true;
    }
};

// Where sharing does not pay there is no text for it: it takes ptxas as long as all else, and products a twentieth longer.
template <class PART, int STEP> struct fuse_shares<PART, STEP, false> {
    unsigned tile, count;

    __device__ __forceinline__ fuse_shares(const fuse_shape& shape, float*) : tile(blockIdx.x), count(PART::count(shape)) {}
    __device__ __forceinline__ bool more() const { return tile < count; }
    __device__ __forceinline__ void next() { tile += gridDim.x; }
    template <class T> __device__ __forceinline__ const fuse_side<T>& of(const fuse_side<T>& side) const { return side; }
    template <class T, int N> __device__ __forceinline__ const fuse_sides<T, N>& of(const fuse_sides<T, N>& sides) const { return sides; }
    template <int N> __device__ __forceinline__ bool settle(float (&)[N], unsigned*) const { return true; }
};
