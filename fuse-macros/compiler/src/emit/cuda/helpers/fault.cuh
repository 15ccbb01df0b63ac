// The first fault of a stream, and the calls that failed lately, in memory the host reads, and these once more where kernels read them.
struct fuse_fault { unsigned code, op; unsigned long long call; long long value, extent; unsigned long long failed[32], *here; };

static __device__ __noinline__ void fuse_note(
    fuse_fault* fault, unsigned long long call, unsigned code, unsigned op, long long value, long long extent)
{
    volatile fuse_fault* record = fault;
    record->failed[call % 32] = call;
    ((volatile unsigned long long*)record->here)[call % 32] = call;
    if (atomicCAS(&fault->code, 0u, 0xffffffffu) == 0u) {
        record->op = op;
        record->call = call;
        record->value = value;
        record->extent = extent;
        __threadfence_system();
        record->code = code;
    }
}
