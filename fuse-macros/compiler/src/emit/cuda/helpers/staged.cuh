// Reduces one value of each row in the canonical row order; called by all THREADS threads of one block.
template <class R, int BLOCK_THREADS, class V>
static __device__ __noinline__ typename R::Acc fuse_over_rows(const V* values, long long rows)
{
    constexpr int GROUPS = 1024 / BLOCK_THREADS;
    fuse_tree<R> tree(rows);
    for (long long block = 0; block < rows; block += 16384) {
        fuse_lanes<R, BLOCK_THREADS, 1, GROUPS> lanes;
        for (int first = 0; first < 16384 && block + first < rows; first += 1024) {
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                const long long row = block + first + g * BLOCK_THREADS + threadIdx.x;
                if (row < rows) lanes.add(g, 0, R::of(fuse_fresh(values + row), row));
            }
        }
        tree.push(lanes.total());
    }
    return tree.total();
}
