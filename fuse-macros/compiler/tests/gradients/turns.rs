//! What loops read of a result is what they wrote there last, where values take turns in its memory.

use std::collections::HashMap;

/// Checks the text of loops; how many values it reads of results.
pub fn check(text: &str) -> usize {
    let mut written: HashMap<&str, &str> = HashMap::new();
    let mut reads = 0;
    for line in text.lines().map(str::trim) {
        if line.starts_with("fn ") {
            written.clear();
        }
        if let Some((name, _)) = declared(line) {
            written.insert(name, "");
        }
        for (value, slot) in line.split("let ").filter_map(read) {
            if let Some(last) = written.get(slot) {
                assert_eq!(*last, value, "{slot} holds {last}, and {value} is read: {line}\n{text}");
                reads += 1;
            }
        }
        if let Some((slot, value)) = line.strip_suffix(';').and_then(|line| line.split_once("[i] = ")) {
            written.entry(slot).and_modify(|last| *last = value);
        }
    }
    reads
}

/// `let name = &mut outs.elem::<f32>(0)[..n];`
fn declared(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("let ")?.split_once(" = &mut outs.elem")
}

/// `name: f32 = slot[i];` and what may follow.
fn read(definition: &str) -> Option<(&str, &str)> {
    let (name, value) = definition.split_once(": ")?;
    let (_, value) = value.split_once(" = ")?;
    Some((name, value.split_once("[i];")?.0))
}

#[test]
fn what_another_value_has_taken_is_found_out() {
    let text = |read: &str| {
        format!(
            "fn run() {{\nlet y_out = &mut outs.elem::<f32>(0)[..n];\ny_out[i] = exp;\ny_out[i] = div;\nlet {read}: f32 = y_out[i];\n}}"
        )
    };
    assert_eq!(check(&text("div")), 1);
    assert!(std::panic::catch_unwind(|| check(&text("exp"))).is_err());
}
