//! Curves as an SVG picture.

use std::fmt::Write;
use std::path::Path;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Room for the numbers beside the axes.
const MARGIN: f64 = 48.0;

/// A line of the picture: its name, its colour, and a value for each epoch.
pub struct Curve<'a> {
    pub name: &'a str,
    pub colour: &'a str,
    pub values: &'a [f64],
}

/// Writes a picture of curves over epochs, from 0 up to the largest value.
pub fn save(path: &Path, title: &str, curves: &[Curve<'_>]) -> std::io::Result<()> {
    let all = || curves.iter().flat_map(|curve| curve.values);
    let top = all().copied().filter(|value| value.is_finite()).fold(1e-9, f64::max);
    let last = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0).saturating_sub(1).max(1);
    let x = |epoch: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * epoch as f64 / last as f64;
    let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * value / top;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">{title}</text>\n"
    );
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let (left, right, at) = (x(0), x(last), y(value));
        _ = writeln!(svg, "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>");
        _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>", left - 6.0, at + 4.0);
    }
    for (epoch, anchor) in [(0, "start"), (last, "end")] {
        let (at, below) = (x(epoch), HEIGHT - MARGIN + 18.0);
        _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"{anchor}\">epoch {}</text>", epoch + 1);
    }
    for (number, Curve { name, colour, values }) in curves.iter().enumerate() {
        let point = |(epoch, value): (usize, &f64)| format!("{:.1},{:.1}", x(epoch), y(*value));
        let points: Vec<String> = values.iter().enumerate().map(point).collect();
        _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        let (right, down) = (WIDTH - MARGIN, MARGIN + 16.0 * number as f64);
        _ = writeln!(svg, "<text x=\"{right}\" y=\"{down}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>");
    }
    svg += "</svg>\n";
    std::fs::write(path, svg)
}
