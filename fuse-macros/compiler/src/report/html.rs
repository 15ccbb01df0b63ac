//! The report as a page: a section a graph, a box a kernel, the user's ops inside.

use super::{Explanation, GraphReport, KernelReport, count};
use crate::diag::Break;
use crate::graph::Place;

const STYLE: &str = "body{font:14px sans-serif;margin:2em}article{border:1px solid #888;border-radius:6px;padding:.6em 1em;\
    margin:.6em 0;max-width:60em}.note{color:#666}.break{border-left:4px solid #c60;padding-left:1em}";

/// The whole page.
pub(super) fn page(explanation: &Explanation) -> String {
    let name = escaped(explanation.function());
    let graphs: String = explanation.graphs().iter().chain(explanation.gradients()).map(graph).collect();
    let breaks: String = explanation.breaks().iter().map(graph_break).collect();
    let head = format!("<!doctype html>\n<meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style>");
    format!("{head}\n<h1>{name}</h1>\n{graphs}{breaks}")
}

fn graph(graph: &GraphReport) -> String {
    let title = format!("graph {}", escaped(&graph.name));
    let launches = count(graph.launches, "launch");
    let kernels: String = graph.kernels.iter().map(kernel).collect();
    let missed = graph.missed.iter().map(|m| format!("<p class=\"note\">not fused: {}</p>\n", escaped(&m.reason)));
    let saved = format!("<p>fusion saved {} bytes of writes and reads</p>", escaped(&graph.saved));
    let missed: String = missed.collect();
    let together = graph.together.iter().map(|text| format!("<p class=\"note\">{}</p>\n", escaped(text)));
    let together: String = together.collect();
    format!(
        "<section><h2>{title} <span class=\"note\">{launches}</span></h2>\n{kernels}{saved}\n{together}{missed}</section>\n"
    )
}

fn kernel(kernel: &KernelReport) -> String {
    let ops: String = kernel.ops.iter().filter(|p| !p.text.is_empty()).map(op).collect();
    let bytes = format!("reads {} bytes, writes {} bytes", escaped(&kernel.read), escaped(&kernel.written));
    let head = format!("<b>{}</b> <code>{}</code>", escaped(&kernel.name), escaped(&kernel.domain));
    format!("<article>{head}<ul>{ops}</ul><span class=\"note\">{bytes}</span></article>\n")
}

fn op(place: &Place) -> String {
    let (text, file) = (escaped(&place.text), escaped(&place.file));
    format!("<li><code>{text}</code> <span class=\"note\">{file}:{}</span></li>", place.line)
}

fn graph_break(b: &Break) -> String {
    let place = escaped(&format!("{}:{}:{}", b.file, b.line, b.column));
    let (code, reason, hint) = (escaped(&b.code), escaped(&b.reason), escaped(&b.hint));
    let help = format!("<br><span class=\"note\">help: {hint}</span>");
    format!("<section class=\"break\"><b>break {code}</b> at {place}: {reason}{help}</section>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
