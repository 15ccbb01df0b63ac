// d = a b, or d += a b, of 64 by 32 elements of e4m3 and 32 by N in shared memory, where runs along k lie. See "wgmma.mma_async" in
// the PTX ISA.
template <int N> struct fuse_wgmma_float8;

template <> struct fuse_wgmma_float8<96> {
    static __device__ __forceinline__ void run(float (&d)[48], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %50, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "
                     "%48, %49, add, 1, 1;\n}"
                     : FUSE_32(d, 0), FUSE_8(d, 32), FUSE_8(d, 40)
                     : "l"(a), "l"(b), "r"(add));
    }
};

template <> struct fuse_wgmma_float8<128> {
    static __device__ __forceinline__ void run(float (&d)[64], unsigned long long a, unsigned long long b, int add)
    {
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
                         "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                         "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                     "%64, %65, add, 1, 1;\n}"
                     : FUSE_32(d, 0), FUSE_32(d, 32)
                     : "l"(a), "l"(b), "r"(add));
    }
};
