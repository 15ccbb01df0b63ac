#if defined(HEAD_KEYS)
// How kernels of attention of floats go about: four warps read the rows that a block of threads goes through, 64 at a time, and split
// them into a ring of slots; a slot serves products along its rows and products across them. GROUPS warpgroups have 64 rows each, whose
// parts lie in OWN, and are at most WIDEST long. A block of rows is two slots.
template <class OWN, int WIDEST, int GROUPS> struct fuse_third_ring {
    static constexpr int LINES = 64 * GROUPS;

    struct Slot {
        unsigned char parts[fuse_third_right<WIDEST>::BYTES];
        // A number of each row, and which weights are kept of each line that the warpgroups have, a bit for each row.
        float numbers[64];
        unsigned kept[2][LINES];
        // Whether a warp met odd values, and of which tile the rows are.
        unsigned odd[4];
        int tile, unused[3];
    };

    // As many slots as there is room for.
    static constexpr int ROOM = 232192, MOST = (ROOM - (int)sizeof(OWN)) / ((int)sizeof(Slot) + 16), SLOTS = MOST < 6 ? MOST : 6;
    static_assert(SLOTS >= 2, "a block is two slots");

    struct Shared {
        OWN own;
        Slot slot[SLOTS];
        fuse_ring<SLOTS> ring;
        int next;
    };

    static __device__ __forceinline__ Shared& shared()
    {
        extern __shared__ unsigned char fuse_memory[];
        Shared& shared = *(Shared*)(fuse_memory + (127 & -fuse_shared_at(fuse_memory)));
        if (threadIdx.x == 0) shared.ring.open(128, 4 * GROUPS);
        __syncthreads();
        return shared;
    }

    // A warpgroup that brings rows.
    struct Feeder {
        Shared& shared;
        const fuse_attention_shape& shape;
        int number;
        fuse_lap<SLOTS> lap;

        // 64 rows of a tile, `rows` of which are there, and their numbers unless there are none. `more` is done with the slot.
        template <int WIDE, class MORE>
        __device__ __forceinline__ void bring(const float* from, long long stride, int rows, int columns, const float* numbers, const MORE& more)
        {
            typedef fuse_third_right<WIDE> Right;
            float of[Right::SOME][8], line = 0.0f;
            Right::read(of, 0, from, stride, rows, columns);
            if (numbers && threadIdx.x < 64 && (int)threadIdx.x < rows) line = numbers[threadIdx.x];
            Slot& slot = shared.slot[lap.stage];
            shared.ring.await(shared.ring.empty[lap.stage], lap.parity ^ 1);
            more(slot);
            fuse_range range;
            Right::write(slot.parts, of, 0, range);
#pragma unroll
            for (int first = Right::SOME; first < Right::PACKS; first += Right::SOME) {
                Right::read(of, first, from, stride, rows, columns);
                Right::write(slot.parts, of, first, range);
            }
            const bool is_odd = __any_sync(~0u, range.is_odd());
            if (threadIdx.x % 32 == 0) slot.odd[threadIdx.x / 32] = is_odd;
            if (threadIdx.x < 64) slot.numbers[threadIdx.x] = line;
            if (threadIdx.x == 0) slot.tile = number;
            // What was written is read by tensor cores.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            shared.ring.arrive(shared.ring.full[lap.stage]);
            lap.next();
        }

        template <int WIDE>
        __device__ __forceinline__ void bring(const float* from, long long stride, int rows, int columns, const float* numbers)
        {
            bring<WIDE>(from, stride, rows, columns, numbers, [](Slot&) {});
        }

        // Blocks of a tile from the last one on, tile after tile; the end is a slot, too.
        template <class TILE, class BLOCK> __device__ __forceinline__ void run(unsigned* counters, const BLOCK& bring_block)
        {
            const int total = shape.tiles * shape.heads;
            number = blockIdx.x;
            while (number < total) {
                const TILE tile(number, shape);
                int next = 0;
                if (threadIdx.x == 0) next = gridDim.x + atomicAdd(counters, 1u);
                for (int block = tile.blocks - 1; block >= tile.first; --block) bring_block(*this, tile, block);
                if (threadIdx.x == 0) shared.next = next;
                asm volatile("bar.sync 1, 128;" ::: "memory");
                number = *(volatile int*)&shared.next;
                asm volatile("bar.sync 1, 128;" ::: "memory");
            }
            shared.ring.await(shared.ring.empty[lap.stage], lap.parity ^ 1);
            if (threadIdx.x == 0) shared.slot[lap.stage].tile = number;
            shared.ring.arrive(shared.ring.full[lap.stage]);
            // The last block to leave lets the counters be 0 again.
            if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = counters[1] = 0;
        }

        // What is kept of 64 keys, for the queries that the warpgroups have.
        __device__ __forceinline__ void bring_kept_keys(Slot& slot, const fuse_kept& kept, const int (&batch)[3], int m, int n) const
        {
            if (threadIdx.x >= LINES) return;
#pragma unroll
            for (int half = 0; half < 2; ++half) slot.kept[half][threadIdx.x] = *kept.at(batch, m + threadIdx.x, n + half * 32);
        }

        // What is kept of 64 queries, for the keys that the warpgroups have. A lane has the words of a query, and leaves that of a key.
        __device__ __forceinline__ void bring_kept_queries(Slot& slot, const fuse_kept& kept, const int (&batch)[3], int m, int n) const
        {
            const int lane = threadIdx.x % 32;
#pragma unroll
            for (int number = threadIdx.x / 32; number < LINES / 16; number += 4) {
                const int half = number % 2, first = number / 2 * 32;
                const unsigned word = *kept.at(batch, m + half * 32 + lane, n + first);
                unsigned own = 0;
#pragma unroll
                for (int key = 0; key < 32; ++key) {
                    const unsigned queries = __ballot_sync(~0u, word >> key & 1);
                    if (lane == key) own = queries;
                }
                slot.kept[half][first + lane] = own;
            }
        }
    };

    // Where a warpgroup that multiplies is on its way round the ring.
    struct Way {
        Shared& shared;
        fuse_lap<SLOTS> lap;

        __device__ __forceinline__ void await() const { shared.ring.await(shared.ring.full[lap.stage], lap.parity); }

        // The number of the tile that comes next.
        __device__ __forceinline__ int tile() const
        {
            await();
            return *(volatile int*)&shared.slot[lap.stage].tile;
        }

        // Waits for the next slot.
        __device__ __forceinline__ unsigned take()
        {
            await();
            const unsigned slot = lap.stage;
            lap.next();
            return slot;
        }

        __device__ __forceinline__ const unsigned char* parts(unsigned slot) const { return shared.slot[slot].parts; }

        __device__ __forceinline__ bool is_odd(unsigned slot) const
        {
            const uint4 odd = *(const uint4*)shared.slot[slot].odd;
            return (odd.x | odd.y | odd.z | odd.w) != 0;
        }

        // A warp is done with a slot.
        __device__ __forceinline__ void release(unsigned slot) const
        {
            __syncwarp();
            if (threadIdx.x % 32 == 0) shared.ring.arrive(shared.ring.empty[slot]);
        }

        // The number of the row in which a thread has sum i.
        __device__ __forceinline__ float number(unsigned slot, int i) const
        {
            const float2 two = *(const float2*)&shared.slot[slot].numbers[i / 4 * 8 + threadIdx.x % 4 * 2];
            return i % 2 == 0 ? two.x : two.y;
        }
    };

    // What is kept of a thread's sums.
    struct Kept {
        unsigned of[2][2];

        // Of line `line` of all that the warpgroups have, and of the one eight behind.
        __device__ __forceinline__ void take(const Slot& slot, int line)
        {
#pragma unroll
            for (int r = 0; r < 2; ++r)
#pragma unroll
                for (int half = 0; half < 2; ++half) of[r][half] = slot.kept[half][line + 8 * r] >> threadIdx.x % 4 * 2;
        }

        __device__ __forceinline__ bool has(int i) const { return of[i / 2 % 2][i / 16] >> (i / 4 % 4 * 8 + i % 2) & 1; }
    };
};

// Writes one of a thread's two rows.
template <int N, class TO> static __device__ __forceinline__ void fuse_put_line(TO* row, int columns, const float (&sum)[N], int r, float factor)
{
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
        if (j * 8 + column < columns) *(float2*)(row + j * 8 + column) = make_float2(sum[4 * j + 2 * r] * factor, sum[4 * j + 2 * r + 1] * factor);
}
#endif
