// Reduces one value of each row in the canonical row order; called by all THREADS threads of one block.
template <class R, int BLOCK_THREADS, class V>
static __device__ __noinline__ typename R::Acc fuse_over_rows(const V* values, long long rows)
{
    constexpr int GROUPS = 1024 / BLOCK_THREADS;
    fuse_tree<R> tree(rows);
    for (long long block = 0; block < rows; block += 16384) {
        fuse_lanes<R, BLOCK_THREADS, 1, GROUPS> lanes;
        // Reads of several rounds are in flight at once: they come from the second-level cache, and nothing else is left to do.
        constexpr int AHEAD = 4;
        for (int first = 0; first < 16384 && block + first < rows; first += AHEAD * 1024) {
            V ahead[AHEAD][GROUPS];
            const long long at = block + first + threadIdx.x;
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                for (int g = 0; g < GROUPS; ++g) {
                    const long long row = at + k * 1024 + g * BLOCK_THREADS;
                    if (row < rows) ahead[k][g] = fuse_fresh(values + row);
                }
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                for (int g = 0; g < GROUPS; ++g) {
                    const long long row = at + k * 1024 + g * BLOCK_THREADS;
                    if (row < rows) lanes.add(g, 0, R::of(ahead[k][g], row));
                }
        }
        tree.push(lanes.total());
    }
    return tree.total();
}
