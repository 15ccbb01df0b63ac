use fuse_runtime::prelude::*;

fn limit() -> Result<f32, Error> {
    Ok(1.0)
}

#[compile(fullgraph)]
fn limited(x: &Tensor<f32, 1>) -> Result<Tensor<f32, 1>, Error> {
    let y = x.exp();
    let limit = limit()?;
    Ok(y * limit)
}

fn main() {}
