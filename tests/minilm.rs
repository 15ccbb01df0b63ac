//! all-MiniLM-L6-v2 against embeddings computed with another implementation in f64.

#[path = "../examples/support/minilm.rs"]
mod minilm;

use fuse_runtime::prelude::*;
use minilm::MiniLm;
use serde_json::Value;
use std::path::PathBuf;

/// Components of unit vectors, in f32 through six layers.
const TOLERANCE: f64 = 1e-5;

#[test]
fn embeddings_are_those_of_the_reference() {
    let Some(folder) = model_folder() else {
        println!("skipped: FUSE_MINILM does not name the folder of all-MiniLM-L6-v2");
        return;
    };
    for device in devices() {
        let model = MiniLm::load(&folder, device).expect("the model loads");
        let reference: Value =
            serde_json::from_str(include_str!("minilm/reference.json")).expect("the reference is JSON");
        let rows = reference["rows"].as_array().expect("the reference has rows");
        for row in rows {
            check(&model, &[row], device);
        }
        // All together, so that shorter sentences are padded.
        check(&model, &rows.iter().collect::<Vec<_>>(), device);
    }
}

fn check(model: &MiniLm, rows: &[&Value], device: Device) {
    let texts: Vec<&str> = rows.iter().map(|row| row["text"].as_str().expect("text")).collect();
    let tokens = model.tokenize(&texts).expect("the texts are tokenised");
    let embeddings = model.encode(&tokens).to_vec2();
    for ((row, ids), embedding) in rows.iter().zip(tokens.ids.to_vec2()).zip(embeddings) {
        let (text, known) = (&row["text"], numbers(&row["ids"]));
        assert!(ids.iter().take(known.len()).map(|&id| id as f64).eq(known), "tokens of {text}");
        let exact = numbers(&row["embedding"]);
        assert_eq!(embedding.len(), exact.len());
        let differences = embedding.iter().zip(exact).map(|(&value, exact)| (f64::from(value) - exact).abs());
        // In the total order NaN is the largest.
        let largest = differences.max_by(f64::total_cmp).expect("embeddings have values");
        assert!(largest <= TOLERANCE, "{text} among {} texts on {device} is off by {largest:e}", rows.len());
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The folder of the model; `FUSE_REQUIRE_MINILM=1` makes its absence a failure.
fn model_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FUSE_MINILM").map(PathBuf::from).filter(|folder| folder.is_dir());
    let required = std::env::var("FUSE_REQUIRE_MINILM").is_ok_and(|value| value == "1");
    assert!(folder.is_some() || !required, "FUSE_REQUIRE_MINILM is set, but FUSE_MINILM names no folder");
    folder
}

/// The processor, and the GPU that `FUSE_DEVICE` names.
fn devices() -> Vec<Device> {
    let named =
        std::env::var("FUSE_DEVICE").ok().map(|name| name.parse::<Device>().expect("FUSE_DEVICE names a device"));
    let mut devices = vec![Device::cpu()];
    devices.extend(named.filter(|device| !device.is_cpu()));
    devices
}
