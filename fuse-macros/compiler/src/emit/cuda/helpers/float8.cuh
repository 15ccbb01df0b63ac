// Products of e4m3 on the tensor cores of Hopper, in the form of those of halves: 128 inner positions a stage, along which both
// operands lie in aligned runs of 16 bytes. These tensor cores keep about 14 bits of a sum of fp8, so there is one for a stage
// alone, PART columns at a time, and those are added up with rounding while the other four warps multiply.
template <int SIZE> struct fuse_float8 : fuse_halves<fuse_e4m3, SIZE, 1, 1> {
    typedef fuse_halves<fuse_e4m3, SIZE, 1, 1> Base;
    static constexpr int PART = SIZE % 128 == 0 ? 128 : 96;

    __device__ __forceinline__ fuse_float8(void* at) : Base(at) {}

    static __device__ __forceinline__ void few_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 56;"); }
    static __device__ __forceinline__ void many_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 224;"); }

    __device__ __forceinline__ void multiply(float (&product)[SIZE / 2], const fuse_side<fuse_e4m3>& left)
    {
        for (int k = 0; k < (int)left.k_end; k += Base::DEPTH) {
            auto& ring = this->shared.ring;
            ring.await(ring.full[this->lap.stage], this->lap.parity);
            // What was copied is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            const typename Base::Stage& stage = this->shared.stage[this->lap.stage];
            const unsigned char* rows = stage.left + (threadIdx.x / 128 - 1) * 8192;
#pragma unroll
            for (int part = 0; part < SIZE / PART; ++part) {
                float sum[PART / 2];
                fuse_wgmma_begin();
#pragma unroll
                for (int step = 0; step < Base::DEPTH / 32; ++step)
                    fuse_wgmma_float8<PART>::run(
                        sum, Base::template swizzled<1>(rows, step), Base::template swizzled<1>(stage.right + part * PART * 128, step), step > 0);
                fuse_wgmma_end();
                fuse_wgmma_await<0>(sum);
                if (part == SIZE / PART - 1) this->give_back(this->lap.stage);
#pragma unroll
                for (int n = 0; n < PART / 2; ++n) product[part * (PART / 2) + n] += sum[n];
            }
            this->lap.next();
        }
    }
};
