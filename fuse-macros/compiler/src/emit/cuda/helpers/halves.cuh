// Products of halves on the tensor cores of Hopper. A block computes 128 rows and SIZE columns at a time. Four warps copy 64 inner
// positions of both operands a stage to shared memory, eight multiply 64 rows each four from there. L and R say how the operands
// lie, as in `fuse_packs`: 1 along k, 2 along their rows or columns, in both cases in aligned runs of 16 bytes. Of N products with
// one left operand it computes as many columns each, a multiple of 64.
template <class T, int SIZE, int L, int R, int N = 1> struct fuse_halves {
    static constexpr int EACH = SIZE / N;
    typedef fuse_part<128, EACH> Part;
    static constexpr int RUN = 16 / sizeof(T), DEPTH = 8 * RUN, STAGES = SIZE > 192 ? 4 : 5;

    // Lines of 128 bytes: 64 inner positions of a row, or 64 rows at an inner position. Of eight lines, the 16 bytes at the
    // same place are swizzled into different banks.
    struct Stage { unsigned char left[128 * 128], right[SIZE * 128]; };
    struct Shared {
        Stage stage[STAGES];
        fuse_ring<STAGES> ring;
        typename fuse_turn<SIZE>::Shared turn;
    };

    Shared& shared;
    fuse_lap<STAGES> lap;

    __device__ __forceinline__ fuse_halves(void* at) : shared(*(Shared*)(((unsigned long long)at + 1023) / 1024 * 1024))
    {
        if (threadIdx.x == 0) shared.ring.open(128, 2);
        __syncthreads();
    }

    // Whether a thread is one of those that copy.
    static __device__ __forceinline__ bool feeds() { return threadIdx.x < 128; }

    // First of all, those leave the others most of the registers: together they may have as many as 384 threads start with.
    static __device__ __forceinline__ void few_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 72;"); }
    static __device__ __forceinline__ void many_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 216;"); }

    static __device__ __forceinline__ void copy(unsigned to, const T* from, int bytes)
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    }

    // Copies X rows (or columns) of an operand from inner position k on; what is outside is 0.
    template <int LIE, int X> static __device__ __forceinline__ void copy(unsigned char* lines, const fuse_side<T>& side, int k)
    {
        const int line = threadIdx.x / 8, chunk = threadIdx.x % 8;
        unsigned to = fuse_shared_at(lines) + line * 128 + (chunk ^ line % 8) * 16;
#pragma unroll
        for (int block = 0; block < X; block += 64) {
            const T* from = side.from + chunk * RUN;
            from += LIE == 1 ? (block + line) * side.x_stride + k : (k + line) * side.k_stride + block;
            const int room = chunk * RUN + (LIE == 1 ? k - (int)side.k_end : block - side.x_end);
            const int bytes = min(max(-room, 0), RUN) * (int)sizeof(T), lines = LIE == 1 ? side.x_end - block - line : (int)side.k_end - k - line;
#pragma unroll
            for (int n = 0; n < 64; n += 16, to += 2048, from += 16 * (LIE == 1 ? side.x_stride : side.k_stride))
                copy(to, from, lines > n ? bytes : 0);
        }
    }

    __device__ __forceinline__ void feed(const fuse_side<T>& left, const fuse_sides<T, N>& right)
    {
        for (int k = 0; k < (int)left.k_end; k += DEPTH) {
            shared.ring.await(shared.ring.empty[lap.stage], lap.parity ^ 1);
            Stage& stage = shared.stage[lap.stage];
            copy<L, 128>(stage.left, left, k);
#pragma unroll
            for (int n = 0; n < N; ++n) copy<R, EACH>(stage.right + n * EACH * 128, right[n], k);
            shared.ring.arrive_behind_copies(shared.ring.full[lap.stage]);
            lap.next();
        }
    }

    // The descriptor of an operand from 16 times `step` inner positions on: 1024 bytes from eight lines to the next, and for one
    // that is turned 8192 from 64 rows to the next.
    template <int LIE> static __device__ __forceinline__ unsigned long long swizzled(const unsigned char* lines, int step)
    {
        const unsigned from = fuse_shared_at(lines) + step * (LIE == 1 ? 32 : 2048);
        return (unsigned long long)(from >> 4) | (unsigned long long)(LIE == 1 ? 1 : 8192 >> 4) << 16
            | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
    }

    // A tile of the product. While one stage is multiplied the one before is given back.
    __device__ __forceinline__ void multiply(float (&product)[SIZE / 2], const fuse_side<T>& left)
    {
        unsigned before = 0;
        for (int k = 0; k < (int)left.k_end; k += DEPTH) {
            shared.ring.await(shared.ring.full[lap.stage], lap.parity);
            // What was copied is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            const Stage& stage = shared.stage[lap.stage];
            const unsigned char* rows = stage.left + (threadIdx.x / 128 - 1) * 8192;
            fuse_wgmma_begin();
#pragma unroll
            for (int step = 0; step < DEPTH / 16; ++step)
                fuse_wgmma_halves<T, SIZE, L == 2, R == 2>::run(product, swizzled<L>(rows, step), swizzled<R>(stage.right, step), k + step > 0);
            fuse_wgmma_end();
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (k > 0) give_back(before);
            before = lap.stage;
            lap.next();
        }
        fuse_wgmma_await<0>(product);
        if (left.k_end > 0) give_back(before);
    }

    __device__ __forceinline__ void give_back(unsigned stage)
    {
        if (threadIdx.x % 128 == 0) shared.ring.arrive(shared.ring.empty[stage]);
    }
};
