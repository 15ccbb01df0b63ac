//! What only a GPU can show.

use crate::cuda::{Args, Buffer, Context, Function, Graph, Matmul, Matrix, Node, Work};
use crate::error::ErrorKind;
use fuse_compiler::types::DType;
use half::f16;
use std::sync::Arc;

fn context_or_skip() -> Option<Arc<Context>> {
    if !Context::is_available() {
        eprintln!("skipped: there is no CUDA device");
        return None;
    }
    Some(Context::get(0).unwrap())
}

fn upload(context: &Arc<Context>, values: &[f32]) -> Buffer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let buffer = Buffer::new(context, bytes.len()).unwrap();
    buffer.write(0, &bytes).unwrap();
    buffer
}

fn download(buffer: &Buffer) -> Vec<f32> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|chunk| f32::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

fn kernel(context: &Context, body: &str) -> Function {
    let source = format!("extern \"C\" __global__ void k({body}");
    context.function(&source, "k", &[], false).unwrap()
}

#[test]
fn bytes_come_back_as_they_went() {
    let Some(context) = context_or_skip() else { return };
    let values: Vec<f32> = (0..100_000).map(|index| index as f32).collect();
    let first = upload(&context, &values);
    let second = Buffer::new(&context, first.len()).unwrap();
    second.copy_from(0, &first, 0, first.len()).unwrap();
    second.fill(4, 8, 0).unwrap();
    let back = download(&second);
    assert_eq!(back[..4], [0.0, 0.0, 0.0, 3.0]);
    assert_eq!(back[4..], values[4..]);
}

#[test]
fn a_launch_reads_its_arguments_at_their_places() {
    let Some(context) = context_or_skip() else { return };
    let f = kernel(&context, "char a, double b, short c, float* out, long long d) { *out = a + b + c + d; }");
    let out = upload(&context, &[0.0]);
    let mut args = Args::new();
    args.push(1i8).push(2.0f64).push(3i16).pointer(out.ptr()).push(4i64);
    context.launch(&f, [1; 3], [1; 3], 0, &args).unwrap();
    assert_eq!(download(&out), [10.0]);
}

#[test]
fn a_block_may_use_all_shared_memory() {
    let Some(context) = context_or_skip() else { return };
    let body = "float* out, int n) {
        extern __shared__ float tile[]; __shared__ float fixed[4];
        tile[n - 1 - threadIdx.x] = threadIdx.x; fixed[0] = 1; __syncthreads();
        out[threadIdx.x] = tile[n - 1 - (threadIdx.x ^ 1)] + fixed[0]; }";
    let f = kernel(&context, body);
    let shared = context.facts().max_shared_per_block - 16;
    let out = upload(&context, &[0.0; 32]);
    let mut args = Args::new();
    args.pointer(out.ptr()).push((shared / 4) as i32);
    context.launch(&f, [1; 3], [32, 1, 1], shared, &args).unwrap();
    assert_eq!(download(&out)[..4], [2.0, 1.0, 4.0, 3.0]);
}

#[test]
fn fixed_shared_memory_counts_towards_the_limit() {
    let Some(context) = context_or_skip() else { return };
    let body = "float* out) {
        extern __shared__ float tile[]; __shared__ float fixed[8 << 8];
        fixed[threadIdx.x] = tile[threadIdx.x] = 1; __syncthreads(); *out = fixed[7] + tile[8]; }";
    let f = kernel(&context, body);
    let out = upload(&context, &[0.0]);
    let mut args = Args::new();
    args.pointer(out.ptr());
    context.launch(&f, [1; 3], [32, 1, 1], 44 << 10, &args).unwrap();
    assert_eq!(download(&out), [2.0]);
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "`k` takes 12 bytes of arguments, 8 were given")]
fn too_few_arguments_are_an_error_of_the_compiler() {
    let Some(context) = context_or_skip() else { panic!("`k` takes 12 bytes of arguments, 8 were given") };
    let mut args = Args::new();
    args.pointer(0);
    let _ = context.launch(&kernel(&context, "float* out, int n) {}"), [1; 3], [1; 3], 0, &args);
}

#[test]
fn a_launch_the_device_cannot_do_names_the_kernel_and_harms_nothing() {
    let Some(context) = context_or_skip() else { return };
    let f = kernel(&context, "float* out) { *out = 5; }");
    let out = upload(&context, &[0.0]);
    let mut args = Args::new();
    args.pointer(out.ptr());
    let error = context.launch(&f, [1; 3], [4096, 1, 1], 0, &args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Driver);
    assert!(error.to_string().contains("could not launch `k`"), "{error}");
    context.launch(&f, [1; 3], [1; 3], 0, &args).unwrap();
    assert_eq!(download(&out), [5.0]);
}

#[test]
fn a_fault_of_a_kernel_reaches_the_host_once() {
    let Some(context) = context_or_skip() else { return };
    let source = r#"
        struct Fault { unsigned code, op; unsigned long long call; long long value, extent; unsigned long long failed[32]; };
        extern "C" __global__ void faulty(Fault* fault, unsigned long long call) {
            fault->failed[call % 32] = call;
            if (atomicCAS(&fault->code, 0u, 0xffffffffu) != 0u) return;
            fault->op = 7; fault->call = call; fault->value = -3; fault->extent = 4;
            __threadfence_system();
            *(volatile unsigned*)&fault->code = 1;
        }"#;
    let f = context.function(source, "faulty", &[], false).unwrap();
    let call = context.next_call();
    let mut args = Args::new();
    args.pointer(context.fault_address()).push(call);
    context.launch(&f, [64, 1, 1], [256, 1, 1], 0, &args).unwrap();
    context.synchronize().unwrap();
    assert_eq!(context.take_fault(call - 1), None);
    let found = context.take_fault(call).unwrap();
    assert_eq!((found.code, found.op, found.call, found.value, found.extent), (1, 7, call, -3, 4));
    assert_eq!(found.failed[(call % 32) as usize], call);
    assert_eq!(context.take_fault(call), None);
}

#[test]
fn memory_that_does_not_fit_is_a_typed_error() {
    let Some(context) = context_or_skip() else { return };
    for len in [context.facts().memory_bytes * 2, usize::MAX / 2] {
        let error = Buffer::new(&context, len).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains(&format!("{len} bytes")), "{error}");
    }
    assert_eq!(download(&upload(&context, &[1.0])), [1.0]);
}

#[test]
fn memory_kept_in_the_pool_makes_room_for_another_size() {
    let Some(context) = context_or_skip() else { return };
    let (free, _) = context.memory_info().unwrap();
    // Most of what is free, in pieces that leave holes too small for one block of that size.
    let piece = free / 10;
    drop((0..6).map(|_| Buffer::new(&context, piece).unwrap()).collect::<Vec<_>>());
    assert!(Buffer::new(&context, piece * 5).is_ok());
}

#[test]
fn threads_share_a_context() {
    let Some(context) = context_or_skip() else { return };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let context = &context;
            scope.spawn(move || {
                for _ in 0..50 {
                    let value = thread as f32;
                    let out = upload(context, &[value; 64]);
                    let f = kernel(context, "float* x) { x[threadIdx.x] += 1; }");
                    let mut args = Args::new();
                    args.pointer(out.ptr());
                    context.launch(&f, [1; 3], [64, 1, 1], 0, &args).unwrap();
                    assert_eq!(download(&out), [value + 1.0; 64]);
                }
            });
        }
    });
}

/// Small whole numbers, whose products every type and algorithm gets exactly.
fn whole(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|index| ((index * 7 + seed) % 5) as f32 - 2.0).collect()
}

fn encode(values: &[f32], dtype: DType) -> Vec<u8> {
    let encode = |value: &f32| match dtype {
        DType::F16 => f16::from_f32(*value).to_ne_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f32(*value).to_ne_bytes().to_vec(),
        DType::F64 => f64::from(*value).to_ne_bytes().to_vec(),
        _ => value.to_ne_bytes().to_vec(),
    };
    values.iter().flat_map(encode).collect()
}

/// Multiplies by the library and in loops, both with the strides of the matrices.
fn check_product(context: &Arc<Context>, matmul: Matmul, lens: [usize; 2], bias: bool) {
    let Matmul { dtype, batch, m, n, k, .. } = matmul;
    let (a, b, shift) = (whole(lens[0], 1), whole(lens[1], 3), whole(n, 4));
    let device = |values: &[f32]| {
        let bytes = encode(values, dtype);
        let buffer = Buffer::new(context, bytes.len()).unwrap();
        buffer.write(0, &bytes).unwrap();
        buffer
    };
    let at = |buffer: &Buffer, matrix: Matrix| Matrix { address: buffer.ptr(), ..matrix };
    let (on_a, on_b, on_bias, on_c) = (device(&a), device(&b), device(&shift), device(&vec![9.0; batch * m * n]));
    let c = Matrix { address: on_c.ptr(), row_stride: n as isize, col_stride: 1, batch_stride: (m * n) as isize };
    let bias_address = bias.then_some(on_bias.ptr());
    let full = Matmul { a: at(&on_a, matmul.a), b: at(&on_b, matmul.b), c, bias: bias_address, ..matmul };
    assert!(context.matmul(&full).unwrap(), "declined: {full:?}");
    let place = |matrix: Matrix, index: usize, row: usize, col: usize| {
        index * matrix.batch_stride as usize + row * matrix.row_stride as usize + col * matrix.col_stride as usize
    };
    let mut expected = Vec::new();
    for (index, row, col) in (0..batch * m * n).map(|flat| (flat / (m * n), flat / n % m, flat % n)) {
        let product = |inner| a[place(matmul.a, index, row, inner)] * b[place(matmul.b, index, inner, col)];
        let sum = (0..k).map(product).sum::<f32>() + if bias { shift[col] } else { 0.0 };
        expected.push(if matmul.relu { sum.max(0.0) } else { sum });
    }
    let mut found = vec![0; on_c.len()];
    on_c.read(0, &mut found).unwrap();
    assert!(found == encode(&expected, dtype), "{matmul:?}");
}

#[test]
fn threads_multiply_at_once() {
    let Some(context) = context_or_skip() else { return };
    let matrix = |row_stride, col_stride| Matrix { address: 0, row_stride, col_stride, batch_stride: 0 };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let context = &context;
            // Long sums of few results are split, and their parts meet in memory.
            let k = 1000 + 100 * thread;
            let matmul = Matmul {
                dtype: DType::F32,
                out_dtype: DType::F32,
                batch: 1,
                m: 2,
                n: 4,
                k,
                a: matrix(k as isize, 1),
                b: matrix(4, 1),
                c: matrix(4, 1),
                bias: None,
                relu: false,
                tf32: false,
                tuned: false,
            };
            scope.spawn(move || (0..50).for_each(|_| check_product(context, matmul, [2 * k, k * 4], false)));
        }
    });
}

#[test]
fn the_library_multiplies_every_type_and_layout() {
    let Some(context) = context_or_skip() else { return };
    let (batch, m, n, k) = (3, 24, 40, 16);
    let matrix = |row_stride, col_stride, batch_stride| Matrix { address: 0, row_stride, col_stride, batch_stride };
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (a, b) in [
            (matrix(16, 1, 24 * 16), matrix(40, 1, 16 * 40)),
            (matrix(1, 24, 24 * 16), matrix(1, 16, 16 * 40)),
            (matrix(16, 1, 24 * 16), matrix(1, 16, 0)),
            (matrix(32, 1, 24 * 32), matrix(48, 1, 0)),
        ] {
            let lens = [batch * 24 * 32, batch * 16 * 48];
            for (bias, relu) in [(false, false), (true, false), (true, true), (false, true)] {
                let matmul = Matmul {
                    dtype,
                    out_dtype: dtype,
                    batch,
                    m,
                    n,
                    k,
                    a,
                    b,
                    c: a,
                    bias: None,
                    relu,
                    tf32: false,
                    tuned: false,
                };
                check_product(&context, matmul, lens, bias);
            }
        }
    }
}

#[test]
fn only_high_precision_rounds_to_tf32() {
    let Some(context) = context_or_skip() else { return };
    // 1 + 2^-12 needs more than the 10 bits of TF32.
    let fine = 1.0 + 1.0 / 4096.0;
    let (a, b, c) =
        (upload(&context, &[fine; 64 * 64]), upload(&context, &[1.0; 64 * 64]), upload(&context, &[0.0; 64 * 64]));
    let square = |buffer: &Buffer| Matrix { address: buffer.ptr(), row_stride: 64, col_stride: 1, batch_stride: 0 };
    let (dtype, batch, m, n, k) = (DType::F32, 1, 64, 64, 64);
    for (tf32, expected) in [(false, 64.0 * fine), (true, 64.0)] {
        let (a, b, c_matrix) = (square(&a), square(&b), square(&c));
        assert!(
            context
                .matmul(&Matmul {
                    dtype,
                    out_dtype: dtype,
                    batch,
                    m,
                    n,
                    k,
                    a,
                    b,
                    c: c_matrix,
                    bias: None,
                    relu: false,
                    tf32,
                    tuned: false
                })
                .unwrap()
        );
        assert_eq!(download(&c)[..2], [expected; 2], "tf32 {tf32}");
    }
}

#[test]
fn relu_of_the_library_keeps_nan() {
    let Some(context) = context_or_skip() else { return };
    let (a, b, c) = (upload(&context, &[f32::NAN; 64]), upload(&context, &[1.0; 64]), upload(&context, &[0.0; 64]));
    let square = |buffer: &Buffer| Matrix { address: buffer.ptr(), row_stride: 8, col_stride: 1, batch_stride: 0 };
    let (dtype, batch, m, n, k, bias) = (DType::F32, 1, 8, 8, 8, None);
    let matmul = Matmul {
        dtype,
        out_dtype: dtype,
        batch,
        m,
        n,
        k,
        a: square(&a),
        b: square(&b),
        c: square(&c),
        bias,
        relu: true,
        tf32: false,
        tuned: false,
    };
    assert!(context.matmul(&matmul).unwrap());
    assert!(download(&c).iter().all(|value| value.is_nan()));
}

#[test]
fn a_graph_launches_kernels_and_products_where_their_memory_moved() {
    let Some(context) = context_or_skip() else { return };
    const N: usize = 64;
    let f = kernel(&context, "float* to, const float* from, float add) { to[threadIdx.x] = from[threadIdx.x] + add; }");
    let matrix = |address| Matrix { address, row_stride: N as isize, col_stride: 1, batch_stride: 0 };
    let matmul = |a: &Buffer, b: &Buffer, c: &Buffer| Matmul {
        dtype: DType::F32,
        out_dtype: DType::F32,
        batch: 1,
        m: N,
        n: N,
        k: N,
        a: matrix(a.ptr()),
        b: matrix(b.ptr()),
        c: matrix(c.ptr()),
        bias: None,
        relu: false,
        tf32: false,
        tuned: false,
    };
    let eye: Vec<f32> = (0..N * N).map(|k| if k / N == k % N { 2.0 } else { 0.0 }).collect();
    let values: Vec<f32> = (0..N * N).map(|k| k as f32).collect();
    let (twice, middle) = (upload(&context, &eye), upload(&context, &values));
    let (x, y) = (upload(&context, &values), upload(&context, &[1.0; N * N]));
    let outs = [upload(&context, &[0.0; N * N]), upload(&context, &[0.0; N * N])];
    let Some(product) = context.product(&matmul(&x, &twice, &middle)).unwrap() else {
        return eprintln!("skipped: cuBLASLt is not installed");
    };
    let args = |to: &Buffer, add: f32| {
        let mut args = Args::new();
        args.pointer_mut(to.ptr()).pointer(middle.ptr()).push(add);
        args
    };
    let work = Work::Launch {
        function: f,
        grid: [1; 3],
        block: [N as u32, 1, 1],
        shared: 0,
        args: args(&outs[0], 0.5).bytes().into(),
    };
    let first = Node::new(Work::Product(Box::new(product), matmul(&x, &twice, &middle)), vec![]);
    let Some(mut graph) = Graph::new(&context, vec![first, Node::new(work, vec![0])]).unwrap() else {
        return eprintln!("skipped: the driver is too old for graphs");
    };
    graph.launch().unwrap();
    assert_eq!(download(&outs[0])[..3], [0.5, 2.5, 4.5]);
    // Another operand, another result, another scalar; what was launched before keeps what it had.
    graph.multiply(0, matmul(&y, &twice, &middle));
    graph.write(1, 0, args(&outs[1], -1.0).bytes());
    graph.launch().unwrap();
    assert_eq!((&download(&outs[0])[..3], &download(&outs[1])[..3]), (&[0.5, 2.5, 4.5][..], &[1.0; 3][..]));
    for round in 0..100 {
        let operand = if round % 2 == 0 { &x } else { &y };
        graph.multiply(0, matmul(operand, &twice, &middle));
        graph.write(1, 0, args(&outs[round % 2], round as f32).bytes());
        graph.launch().unwrap();
    }
    assert_eq!((download(&outs[0])[1], download(&outs[1])[1]), (2.0 + 98.0, 2.0 + 99.0));
}

#[test]
fn small_reads_see_what_was_launched_before_them() {
    let Some(context) = context_or_skip() else { return };
    let f = kernel(&context, "unsigned char* to, int add) { to[threadIdx.x] = threadIdx.x + add; }");
    let buffer = Buffer::new(&context, 100).unwrap();
    for round in 0..100usize {
        let mut args = Args::new();
        args.pointer_mut(buffer.ptr()).push(round as i32);
        context.launch(&f, [1; 3], [100, 1, 1], 0, &args).unwrap();
        let (start, len) = (round % 36, 1 + round * 7 % 64);
        let mut bytes = vec![0; len];
        buffer.read(start, &mut bytes).unwrap();
        let expected: Vec<u8> = (0..len).map(|k| (start + k + round) as u8).collect();
        assert_eq!(bytes, expected, "round {round}");
    }
}
