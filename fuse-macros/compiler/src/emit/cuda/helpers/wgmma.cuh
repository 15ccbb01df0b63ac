// d = a b, or d += a b, of 64 by 16 bfloat16 in the registers of four warps and 16 by 64 in shared memory; see
// "wgmma.mma_async" in the PTX ISA for which thread has which elements. The products are on their way until they are awaited.
static __device__ __forceinline__ void fuse_wgmma(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int add)
{
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}

// The descriptor of a matrix in shared memory that is not swizzled: pieces of 8 rows by 16 bytes, that lie so many bytes apart
// along k and along the rows.
static __device__ __forceinline__ unsigned long long fuse_pieces(const void* at, int along_k, int along_rows)
{
    return (unsigned long long)(fuse_shared_at(at) >> 4) | (unsigned long long)(along_k >> 4) << 16
        | (unsigned long long)(along_rows >> 4) << 32;
}
