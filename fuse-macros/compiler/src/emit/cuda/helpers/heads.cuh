#if defined(HEAD_KEYS)
// What kernels of attention are called with, and how blocks of threads share the queries.
struct fuse_heads { long long batch[3], row; };

// Extents; the batch axes together are `heads`, of which `section` are worked on at a time: their keys and values stay in the L2 cache.
// So many blocks share the keys of a tile, and so many heads of the last batch axis are rows of one, see the attention of warps. Of the
// tiles of a head so many are whole, see `fuse_attention`.
struct fuse_attention_shape { long long batch[3], m, n, depth, columns; int tiles, heads, section, splits, folded, whole; };

template <class T> struct fuse_matrices { const T* from; const fuse_heads& strides; };

// Where the numbers of a head's rows begin, one a row, behind those of the heads before it.
static __device__ __forceinline__ long long fuse_rows_before(const int (&batch)[3], const fuse_attention_shape& shape)
{
    return ((batch[0] * shape.batch[1] + batch[1]) * shape.batch[2] + batch[2]) * shape.m;
}

// Whether a logarithm is still exact enough in a float when it is the logarithm of a sum of exponentials of scores so large.
static __device__ __forceinline__ bool fuse_is_near(float log) { return fabsf(log) <= 64.0f; }

// The logarithm of the sum of a row's exponentials, for the way back. Where scores are large, as behind a mask that adds -1e9 to all
// of a row, only the largest is, and the rest of it comes behind the logarithms of all rows. A row without keys has weights of 0 on
// the way back, or weights that are no numbers.
template <bool ZERO>
static __device__ __forceinline__ void fuse_put_log(float* logs, const fuse_attention_shape& shape, const int (&batch)[3], int row, float largest,
                                                    float factor, float sum)
{
    const float most = largest * factor, log = logf(sum), nothing = __int_as_float(ZERO ? 0x7f800000 : 0x7fffffff);
    float* const to = logs + fuse_rows_before(batch, shape) + row;
    *to = sum == 0.0f ? nothing : fuse_is_near(most) ? __fmaf_rn(largest, factor, log) : most;
    if (!fuse_is_near(most)) to[shape.heads * shape.m] = sum == 0.0f ? 0.0f : log + __fmaf_rn(largest, factor, -most);
}

static __device__ __forceinline__ float fuse_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// What a block of threads computes at a time: TM queries from m on, at one place of the batch axes, against so many blocks of TN keys.
template <int TM, int TN, bool CAUSAL> struct fuse_query_tile {
    int m, batch[3], blocks;

    // In a section the longest tiles come first, so that at the end short ones fill up what is left.
    __device__ __forceinline__ fuse_query_tile(int number, const fuse_attention_shape& shape) : fuse_query_tile(number, shape, shape.tiles) {}

    // Of so many tiles a head.
    __device__ __forceinline__ fuse_query_tile(int number, const fuse_attention_shape& shape, int tiles)
    {
        const int in_section = shape.section * tiles, section = number / in_section, within = number - section * in_section;
        const int heads = min(shape.section, shape.heads - section * shape.section);
        const int tile = within / heads, head = section * shape.section + within - tile * heads;
        const int b2 = (int)shape.batch[2] / shape.folded, b1 = (int)shape.batch[1], two = head / b2, one = two / b1;
        batch[0] = one;
        batch[1] = two - one * b1;
        batch[2] = head - two * b2;
        m = (CAUSAL ? tiles - 1 - tile : tile) * TM;
        const int keys = CAUSAL ? min((int)shape.n, shape.folded > 1 ? (int)shape.m : m + TM) : (int)shape.n;
        blocks = (keys + TN - 1) / TN;
    }

    template <class E> __device__ __forceinline__ E* in(E* from, const fuse_heads& strides, long long row) const
    {
        return from + (batch[0] * strides.batch[0] + batch[1] * strides.batch[1] + batch[2] * strides.batch[2] + row * strides.row);
    }
};
#endif
