//! The loops that the compiler's own tests review are code this runtime accepts.

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[allow(dead_code)]
        mod $name {
            include!(concat!("../fuse-macros/compiler/tests/loops/", stringify!($name), ".rs"));
        }
    )*

        #[test]
        fn every_reviewed_program_is_compiled_here() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuse-macros/compiler/tests/loops");
            let Ok(files) = std::fs::read_dir(folder) else {
                return println!("skipped: the sources are not on this machine");
            };
            let name = |file: std::fs::DirEntry| file.file_name().into_string().expect("names are ASCII");
            let mut found: Vec<String> = files.map(|file| name(file.expect("the folder can be read"))).collect();
            found.sort();
            let mut compiled: Vec<String> = [$(stringify!($name)),*].map(|name| format!("{name}.rs")).to_vec();
            compiled.sort();
            assert_eq!(found, compiled);
        }
    };
}

programs! { argmax argmax_u8 attention attention_floats attention_fused attention_generic attention_training attention_training_generic attention_training_masked batched_matmul bias_gelu bias_gelu_f64 casts chain column_max column_sum counting cross_entropy cumsum dropout dropout_of_sums dropout_twice embedding gate_up gate_up_f32 integers layer_norm linear_relu linear_relu_f32 linear_relu_generic matmul_i64 norm_residual pointwise pointwise_f16 pointwise_generic projections_generic rms_norm scatter_add several_maps small_rows softmax softmax_generic softmax_gradient sum_all transpose_add write_rows }
