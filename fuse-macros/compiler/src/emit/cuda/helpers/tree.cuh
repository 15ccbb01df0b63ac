// The canonical order above blocks of 16384 elements: consecutive blocks make at most 1024 chunks, which join in the lanes' tree.
static __device__ __forceinline__ long long fuse_blocks_per_chunk(long long len)
{
    const long long blocks = (len + 16383) / 16384;
    return blocks <= 1024 ? 1 : (blocks + 1023) / 1024;
}

// Joins block values as they come: like a binary counter, level k holds the value of 2^k chunks.
template <class R> struct fuse_tree {
    using Acc = typename R::Acc;
    Acc level[11], chunk;
    unsigned chunks;
    long long per_chunk, in_chunk;

    __device__ __forceinline__ fuse_tree(long long len) : chunks(0), per_chunk(fuse_blocks_per_chunk(len)), in_chunk(0) {}

    __device__ __forceinline__ void push(Acc block)
    {
        chunk = in_chunk == 0 ? block : R::join(chunk, block);
        if (++in_chunk == per_chunk) close();
    }

    __device__ __forceinline__ void close()
    {
        Acc carry = chunk;
        bool open = true;
#pragma unroll
        for (int k = 0; k < 11; ++k) {
            if (open && (chunks >> k & 1)) carry = R::join(level[k], carry);
            else if (open) { level[k] = carry; open = false; }
        }
        ++chunks;
        in_chunk = 0;
    }

    __device__ __forceinline__ Acc total()
    {
        if (in_chunk > 0) close();
        Acc all = R::none();
        bool any = false;
#pragma unroll
        for (int k = 0; k < 11; ++k) {
            if (chunks >> k & 1) {
                all = any ? R::join(level[k], all) : level[k];
                any = true;
            }
        }
        return all;
    }
};
