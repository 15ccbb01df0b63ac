// Strides of a matrix: batch axes, then its two axes.
struct fuse_matrix { long long axis[5]; };
// Extents of a product: batch axes, rows, columns, inner extent.
struct fuse_shape { long long batch[3], m, n, k; };

// An operand from the first row (or column) of a block's tile on: x counts its rows (or columns), k inner positions.
template <class T> struct fuse_side { const T* from; long long x_stride, k_stride; int x_end; long long k_end; };

// The right operands of N products, which lie alike.
template <class T, int N> struct fuse_sides {
    const T* from[N];
    long long x_stride, k_stride;
    int x_end;
    long long k_end;

    __device__ __forceinline__ fuse_side<T> operator[](int n) const { return {from[n], x_stride, k_stride, x_end, k_end}; }

    // The one that is asked for where that is known only when the kernel runs: registers have no addresses.
    __device__ __forceinline__ const T* of(int which) const
    {
        const T* found = from[0];
#pragma unroll
        for (int n = 1; n < N; ++n) found = which == n ? from[n] : found;
        return found;
    }
};

// What a block computes of a product: M rows from m and N columns from n on, at one place of the batch axes. Neighbouring tiles
// take turns with eight rows of tiles, so that those computed at the same time read few rows and columns.
template <int M, int N> struct fuse_part {
    static constexpr unsigned TURN = 8;
    fuse_at<3> batch;
    long long m, n;

    __device__ __forceinline__ fuse_part(unsigned tile, const fuse_shape& shape)
    {
        const unsigned across = (unsigned)((shape.n + N - 1) / N), down = (unsigned)((shape.m + M - 1) / M);
        const unsigned place = tile / (across * down);
        tile -= place * across * down;
        const unsigned first = tile / (TURN * across) * TURN, rows = min(down - first, TURN);
        tile -= first * across;
        m = (long long)(first + tile % rows) * M;
        n = (long long)(tile / rows) * N;
        const unsigned two = place / (unsigned)shape.batch[2], one = two / (unsigned)shape.batch[1];
        batch = {(IDX)one, (IDX)(two - one * (unsigned)shape.batch[1]), (IDX)(place - two * (unsigned)shape.batch[2])};
    }

    // How many of them there are.
    static __device__ __forceinline__ unsigned count(const fuse_shape& shape)
    {
        return (unsigned)((shape.n + N - 1) / N * ((shape.m + M - 1) / M) * shape.batch[0] * shape.batch[1] * shape.batch[2]);
    }

    __device__ __forceinline__ long long start(const fuse_matrix& strides) const
    {
        return batch.axis[0] * strides.axis[0] + batch.axis[1] * strides.axis[1] + batch.axis[2] * strides.axis[2];
    }

    template <class T>
    __device__ __forceinline__ fuse_side<T> left(const T* from, const fuse_matrix& strides, const fuse_shape& shape) const
    {
        const long long x_stride = strides.axis[3], k_stride = strides.axis[4];
        return {from + start(strides) + m * x_stride, x_stride, k_stride, (int)min(shape.m - m, (long long)M), shape.k};
    }

    template <class T>
    __device__ __forceinline__ fuse_side<T> right(const T* from, const fuse_matrix& strides, const fuse_shape& shape) const
    {
        const long long x_stride = strides.axis[4], k_stride = strides.axis[3];
        return {from + start(strides) + n * x_stride, x_stride, k_stride, (int)min(shape.n - n, (long long)N), shape.k};
    }

    // The same columns of several right operands.
    template <class T, class... MORE>
    __device__ __forceinline__ fuse_sides<T, 1 + sizeof...(MORE)> rights(const fuse_matrix& strides, const fuse_shape& shape, const T* from, const MORE*... more) const
    {
        const fuse_side<T> side = right(from, strides, shape);
        const long long to = side.from - from;
        return {{side.from, more + to...}, side.x_stride, side.k_stride, side.x_end, side.k_end};
    }
};

// What a thread carries of a tile, SIZE along x and DEPTH along k, from global to shared memory: packs of W elements.
// LIE says how the elements of a pack lie: 0 anywhere, 1 next to each other along k, 2 next to each other along x; in the
// last two cases packs are aligned. Elements outside the matrix are 0.
template <class T, int LIE, int SIZE, int DEPTH, int W> struct fuse_packs {
    static constexpr int THREADS = 2 * SIZE, COUNT = SIZE * DEPTH / W / THREADS;
    // From one pack of a thread to the next.
    static constexpr int X_STEP = LIE == 2 ? 0 : THREADS / (DEPTH / W), K_STEP = LIE == 2 ? THREADS / (SIZE / W) : 0;
    fuse_side<T> side;
    fuse_pack<T, W> of[COUNT];

    __device__ __forceinline__ fuse_packs(const fuse_side<T>& side) : side(side) {}

    // Where the first pack starts. Along k, 16 neighbouring threads take 16 neighbours in x: they write to different banks.
    static __device__ __forceinline__ int x()
    {
        const int n = threadIdx.x;
        return LIE == 2 ? n % (SIZE / W) * W : n / (16 * (DEPTH / W)) * 16 + n % 16;
    }

    static __device__ __forceinline__ int k()
    {
        const int n = threadIdx.x;
        return LIE == 2 ? n / (SIZE / W) : n / 16 % (DEPTH / W) * W;
    }

    // Reads the tile and moves on to the next one.
    __device__ __forceinline__ void read()
    {
        const long long x_step = LIE == 2 ? 1 : side.x_stride, k_step = LIE == 1 ? 1 : side.k_stride;
        const int k_end = (int)min(side.k_end, (long long)DEPTH);
        const T* from = side.from + (x() * x_step + k() * k_step);
#pragma unroll
        for (int pack = 0; pack < COUNT; ++pack) {
            const int x = this->x() + pack * X_STEP, k = this->k() + pack * K_STEP;
            if (LIE != 0 && x + (LIE == 2 ? W : 1) <= side.x_end && k + (LIE == 2 ? 1 : W) <= k_end) {
                of[pack].load(from);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) {
                    const bool inside = LIE == 2 ? x + w < side.x_end && k < k_end : x < side.x_end && k + w < k_end;
                    of[pack].set(w, inside ? from[w * (LIE == 2 ? x_step : k_step)] : T());
                }
            }
            from += X_STEP * x_step + K_STEP * k_step;
        }
        side.from += DEPTH * k_step;
        side.k_end -= DEPTH;
    }
};
