// d = a b, or d += a b, of 64 by 16 halves and 16 by N in shared memory. An operand is turned (1) if its rows or columns lie there,
// and not runs along k. See "wgmma.mma_async" in the PTX ISA.
template <class T, int N, int LEFT_TURNED, int RIGHT_TURNED> struct fuse_wgmma_halves;
#define FUSE_8(d, n) "+f"(d[n]), "+f"(d[n + 1]), "+f"(d[n + 2]), "+f"(d[n + 3]), "+f"(d[n + 4]), "+f"(d[n + 5]), "+f"(d[n + 6]), "+f"(d[n + 7])
#define FUSE_32(d, n) FUSE_8(d, n), FUSE_8(d, n + 8), FUSE_8(d, n + 16), FUSE_8(d, n + 24)
