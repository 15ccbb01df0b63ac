//! The arithmetic of the helpers on the places of threads, evaluated as it is written.

use std::collections::BTreeMap;

type Names<'a> = BTreeMap<&'a str, i64>;

/// What an expression of whole numbers is worth.
struct Expression<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    names: &'a Names<'a>,
}

const LEVELS: [&[&str]; 3] = [&["=="], &["+", "-"], &["*", "/", "%"]];

fn evaluate(text: &str, names: &Names<'_>) -> i64 {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut tokens = vec![];
    let mut rest = text.trim();
    while !rest.is_empty() {
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let len = if word > 0 { word } else { 1 + usize::from(rest.starts_with("==")) };
        tokens.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    let mut expression = Expression { tokens, at: 0, names };
    let value = expression.choice();
    assert_eq!(expression.at, expression.tokens.len(), "{text}");
    value
}

impl Expression<'_> {
    fn next_is(&mut self, wanted: &[&str]) -> Option<String> {
        let token = self.tokens.get(self.at).filter(|token| wanted.contains(token))?;
        self.at += 1;
        Some((*token).to_owned())
    }

    fn choice(&mut self) -> i64 {
        let condition = self.level(0);
        if self.next_is(&["?"]).is_none() {
            return condition;
        }
        let yes = self.choice();
        self.next_is(&[":"]).expect("a choice has two sides");
        let no = self.choice();
        if condition != 0 { yes } else { no }
    }

    fn level(&mut self, level: usize) -> i64 {
        let Some(operators) = LEVELS.get(level) else { return self.single() };
        let mut value = self.level(level + 1);
        while let Some(operator) = self.next_is(operators) {
            let right = self.level(level + 1);
            value = match operator.as_str() {
                "==" => i64::from(value == right),
                "+" => value + right,
                "-" => value - right,
                "*" => value * right,
                "/" => value / right,
                _ => value % right,
            };
        }
        value
    }

    fn single(&mut self) -> i64 {
        if self.next_is(&["("]).is_some() {
            let value = self.choice();
            self.next_is(&[")"]).expect("a parenthesis is closed");
            return value;
        }
        self.at += 1;
        let token = self.tokens[self.at - 1];
        token.parse().unwrap_or_else(|_| self.names[token])
    }
}

/// The text between two others, behind a first one.
fn between<'t>(text: &'t str, first: &str, start: &str, end: &str) -> &'t str {
    let behind = &text[text.find(first).unwrap_or_else(|| panic!("{first} is there"))..];
    let from = behind.find(start).expect("it starts") + start.len();
    &behind[from..from + behind[from..].find(end).expect("it ends")]
}

/// Counts how often each place of a square or oblong tile is met.
fn expect_each_once(extents: [i64; 2], places: impl Iterator<Item = [i64; 2]>) {
    let mut met = BTreeMap::new();
    places.for_each(|place| *met.entry(place).or_insert(0) += 1);
    assert_eq!(met.len() as i64, extents[0] * extents[1]);
    assert!(met.iter().all(|([a, b], n)| *n == 1 && (0..extents[0]).contains(a) && (0..extents[1]).contains(b)));
}

#[test]
fn threads_have_every_element_of_a_tile_once() {
    for text in [include_str!("../helpers/product.cuh"), include_str!("../helpers/tensor.cuh")] {
        let formula = |name: &str| between(text, &format!("int {name}(int "), "return ", ";");
        for size in [64, 128] {
            let names = Names::from([("SIZE", size)]);
            let count = |name: &str| {
                evaluate(between(text, &format!(" {name} = "), "= ", "\n").split([',', ';']).next().unwrap(), &names)
            };
            let (rows, columns) = (count("ROWS"), count("COLUMNS"));
            let places = (0..2 * size).flat_map(|thread| (0..rows).map(move |i| (thread, i)));
            let places =
                places.flat_map(|(thread, i)| (0..columns).map(move |j| (thread, i, j))).map(|(thread, i, j)| {
                    let names = Names::from([("SIZE", size), ("threadIdx.x", thread), ("i", i), ("j", j)]);
                    [evaluate(formula("row"), &names), evaluate(formula("column"), &names)]
                });
            expect_each_once([size, size], places);
        }
    }
}

#[test]
fn threads_carry_every_element_of_a_tile_once() {
    let text = include_str!("../helpers/matrix.cuh");
    for (depth, width) in [(16, 4), (16, 2), (32, 8)] {
        for (size, lie) in [(64, 0), (64, 1), (64, 2), (128, 1), (128, 2)] {
            let value = |text: &str, thread: i64| {
                let names = [("SIZE", size), ("LIE", lie), ("DEPTH", depth), ("W", width), ("n", thread)];
                evaluate(text, &Names::from(names).into_iter().chain([("THREADS", 2 * size)]).collect())
            };
            let formula = |name: &str| between(text, &format!("int {name}()"), "return ", ";");
            let steps = ["X_STEP", "K_STEP"].map(|name| {
                value(between(text, &format!("{name} = "), "= ", "\n").split([',', ';']).next().unwrap(), 0)
            });
            let count = size * depth / width / (2 * size);
            let places = (0..2 * size).flat_map(|thread| {
                let [x, k] = ["x", "k"].map(|name| value(formula(name), thread));
                (0..count).flat_map(move |pack| {
                    (0..width).map(move |w| {
                        let (x, k) = (x + pack * steps[0], k + pack * steps[1]);
                        if lie == 2 { [x + w, k] } else { [x, k + w] }
                    })
                })
            });
            expect_each_once([size, depth], places);
        }
    }
}
