//! What parsing makes of a function: a tree of host code and launches of graphs.

use super::open_rank::OpenRank;
use crate::diag::Break;
use crate::graph::Graph;
use crate::types::{DType, Sym};
use proc_macro2::{Ident, Span, TokenStream};
use std::fmt;

/// A captured function.
pub struct Program {
    /// The function's name.
    pub name: String,
    /// The generic element types; the n-th is `DType::Param(n)`.
    pub generics: Vec<Ident>,
    /// The rank that its tensors leave open, if they do.
    pub open_rank: Option<OpenRank>,
    /// Its graphs, in the order in which the text launches them.
    pub segments: Vec<Graph>,
    /// Which of them are turns of loops on tensor data.
    pub turns: std::collections::BTreeSet<usize>,
    /// What runs on entry: sizes and the checks of `#[dims]`.
    pub entry: Vec<Entry>,
    /// The body.
    pub body: Vec<Step>,
    /// What its value is made of, if it has no host control flow.
    pub returned: Returned,
    /// Sizes that the emitted code must have in variables.
    pub needed: std::collections::BTreeSet<Sym>,
    /// Where host code runs between graphs, or why the whole function does.
    pub breaks: Vec<Break>,
    /// Whether nothing was captured, so that the original runs.
    pub eager: bool,
}

/// What runs on entry.
#[derive(Clone)]
pub enum Entry {
    /// An extent of a parameter gets a name.
    Size(Size),
    /// A named dim is solved from a multiple of it, `3 * D`.
    Solved {
        /// The dim's variable.
        local: Ident,
        /// The dim.
        sym: Sym,
        /// `factor * dim + offset` is the extent.
        factor: i64,
        /// See `factor`.
        offset: i64,
        /// The extent and its place.
        extent: DimAt,
    },
    /// An extent of a parameter must be what `#[dims]` says.
    Check {
        /// The extent and its place.
        extent: DimAt,
        /// What it must be, an i64 expression.
        expected: TokenStream,
    },
    /// A list must have as many parts as what it belongs to.
    Count {
        /// The list.
        list: TokenStream,
        /// What it is called.
        name: String,
        /// How many parts it must have.
        parts: usize,
    },
}

/// What a value is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Returned {
    /// A result of a launch.
    Result {
        /// Index into [`Program::segments`].
        segment: usize,
        /// Which of its results.
        out: usize,
    },
    /// A tensor that is a parameter, as it was given.
    Parameter(Ident),
    /// A tuple, array or vector.
    Parts(Vec<Returned>),
    /// No tensor, or one that host code has made.
    #[default]
    Other,
}

/// An axis of a parameter and what `#[dims]` calls it.
#[derive(Clone)]
pub struct DimAt {
    /// The parameter.
    pub param: Ident,
    /// The axis.
    pub axis: usize,
    /// The dim as written.
    pub text: String,
    /// Whether the parameter is an `Option`.
    pub is_optional: bool,
}

/// `let local = of.size(axis)`.
#[derive(Clone)]
pub struct Size {
    /// The variable.
    pub local: Ident,
    /// The symbol it holds.
    pub sym: Sym,
    /// The tensor.
    pub of: TokenStream,
    /// The axis.
    pub axis: usize,
    /// Whether the tensor's rank is open, so that the axis is one of as many as it is brought to.
    pub is_open: bool,
}

/// One thing the emitted body does.
#[derive(Clone)]
pub enum Step {
    /// Host code, statements with their semicolons.
    Host(TokenStream),
    /// The value of the block it stands in.
    Value(TokenStream),
    /// A host value is read for later: `let local = value;`.
    Capture {
        /// The variable.
        local: Ident,
        /// The value.
        value: TokenStream,
    },
    /// A host scalar is read for a graph.
    Scalar {
        /// The variable.
        local: Ident,
        /// The element type it has in the graph.
        dtype: DType,
        /// The value.
        value: TokenStream,
    },
    /// An extent is read, if a later graph needs it.
    Size(Size),
    /// A graph is launched.
    Launch(Launch),
    /// Two graphs take turns until a test fails.
    Loop(Loop),
    /// One of two graphs runs.
    Branch(Branch),
    /// A tensor behind a `&mut` gets its new value.
    Write {
        /// The variable of type `&mut Tensor`.
        target: Ident,
        /// The value.
        value: TokenStream,
    },
    /// Host control flow around blocks.
    Nest(Vec<Piece>),
}

/// A part of host control flow.
#[derive(Clone)]
pub enum Piece {
    /// Tokens as they are.
    Tokens(TokenStream),
    /// A block.
    Block(Vec<Step>),
    /// Braces around parts.
    Braces(Vec<Piece>),
}

/// A launch: the arguments in the order of the graph's inputs, scalars and host integers.
#[derive(Clone)]
pub struct Launch {
    /// Index into [`Program::segments`].
    pub segment: usize,
    /// Tensor arguments, expressions of type `Tensor` or reference to it.
    pub inputs: Vec<TokenStream>,
    /// The parameter that each of them is, if it is one.
    pub params: Vec<Option<Ident>>,
    /// Scalar arguments.
    pub scalars: Vec<Ident>,
    /// Host integers, i64 expressions.
    pub sizes: Vec<TokenStream>,
    /// The results.
    pub outs: Vec<Out>,
    /// The last op, at whose line failures are reported.
    pub at: Span,
}

/// `while` on tensor data.
#[derive(Clone)]
pub struct Loop {
    /// The variables it changes.
    pub state: Vec<State>,
    /// The first test, whose one result is a bool of rank 0.
    pub test: Launch,
    /// A turn: its results are the new state and the test of the next turn.
    pub turn: Launch,
}

/// `if` on tensor data.
#[derive(Clone)]
pub struct Branch {
    /// The test, a bool of rank 0.
    pub test: TokenStream,
    /// The arms; none where there is nothing to do.
    pub arms: [Option<Launch>; 2],
    /// What the branch gives.
    pub joined: Vec<Joined>,
}

/// Something that a branch gives, and which result of each arm that is.
#[derive(Clone)]
pub enum Joined {
    /// A variable keeps its value where an arm gives none.
    Variable {
        /// The variable.
        state: State,
        /// The results.
        from: [Option<usize>; 2],
    },
    /// The value, or a part of it.
    Value {
        /// The variable it is put into.
        out: Out,
        /// The results.
        from: [usize; 2],
    },
}

impl Joined {
    /// The variable that holds it.
    pub fn local(&self) -> &Ident {
        match self {
            Joined::Variable { state, .. } => &state.local,
            Joined::Value { out, .. } => &out.local,
        }
    }
}

/// A variable that a loop changes.
#[derive(Clone)]
pub struct State {
    /// The variable.
    pub local: Ident,
    /// Which input of a turn it is, if a turn reads it.
    pub read: Option<usize>,
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub rank: usize,
}

/// A result of a launch: `let [mut] local = ..;`.
#[derive(Clone)]
pub struct Out {
    /// The variable.
    pub local: Ident,
    /// Whether the user may change it.
    pub mutable: bool,
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub rank: usize,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.eager {
            writeln!(f, "eager")?;
        }
        for entry in &self.entry {
            match entry {
                Entry::Size(size) if self.needed.contains(&size.sym) => {
                    writeln!(f, "{} = {}.size({})", size.local, size.of, size.axis)?
                }
                Entry::Size(_) => {}
                Entry::Solved { local, extent, .. } => {
                    writeln!(f, "{local} from {}.size({}) = {}", extent.param, extent.axis, extent.text)?
                }
                Entry::Check { extent, .. } => {
                    writeln!(f, "check {}.size({}) = {}", extent.param, extent.axis, extent.text)?
                }
                Entry::Count { name, parts, .. } => writeln!(f, "check {name} has {parts} parts")?,
            }
        }
        Steps { program: self, steps: &self.body, indent: 0 }.fmt(f)?;
        for found in &self.breaks {
            writeln!(f, "break {} at {}:{}: {}", found.code, found.line, found.column, found.reason)?;
        }
        Ok(())
    }
}

struct Steps<'a> {
    program: &'a Program,
    steps: &'a [Step],
    indent: usize,
}

impl fmt::Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pad = "    ".repeat(self.indent);
        for step in self.steps {
            match step {
                Step::Host(tokens) => writeln!(f, "{pad}{tokens}")?,
                Step::Value(tokens) => writeln!(f, "{pad}=> {tokens}")?,
                Step::Capture { local, value } => writeln!(f, "{pad}{local} = {value}")?,
                Step::Scalar { local, dtype, value } => writeln!(f, "{pad}{local}: {dtype} = {value}")?,
                Step::Size(Size { local, sym, of, axis, .. }) => {
                    if self.program.needed.contains(sym) {
                        writeln!(f, "{pad}{local} = {of}.size({axis})")?;
                    }
                }
                Step::Launch(launch) => self.launch(launch, &pad, f)?,
                Step::Loop(found) => {
                    self.launch(&found.test, &pad, f)?;
                    writeln!(f, "{pad}while {} {{", found.test.outs[0].local)?;
                    self.launch(&found.turn, &format!("{pad}    "), f)?;
                    let state: Vec<String> = found.state.iter().map(|state| state.local.to_string()).collect();
                    writeln!(f, "{pad}}} [{}]", state.join(", "))?;
                }
                Step::Branch(found) => {
                    let locals: Vec<String> = found.joined.iter().map(|joined| joined.local().to_string()).collect();
                    writeln!(f, "{pad}[{}] = if {} {{", locals.join(", "), found.test)?;
                    for (arm, end) in found.arms.iter().zip(["} else {", "}"]) {
                        arm.iter().try_for_each(|arm| self.launch(arm, &format!("{pad}    "), f))?;
                        writeln!(f, "{pad}{end}")?;
                    }
                }
                Step::Write { target, value } => writeln!(f, "{pad}* {target} = {value} ;")?,
                Step::Nest(pieces) => {
                    f.write_str(&pad)?;
                    self.pieces(pieces, f)?;
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}

impl Steps<'_> {
    fn launch(&self, launch: &Launch, pad: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outs: Vec<String> =
            launch.outs.iter().map(|out| format!("{}{}", if out.mutable { "mut " } else { "" }, out.local)).collect();
        let mut args: Vec<String> = launch.inputs.iter().map(|input| input.to_string()).collect();
        args.extend(launch.scalars.iter().map(|scalar| scalar.to_string()));
        args.extend(launch.sizes.iter().map(|size| size.to_string()));
        let graph = &self.program.segments[launch.segment];
        writeln!(f, "{pad}[{}] = graph {}({})", outs.join(", "), graph.name, args.join(", "))?;
        for line in graph.to_string().lines() {
            writeln!(f, "{pad}  | {line}")?;
        }
        Ok(())
    }

    fn pieces(&self, pieces: &[Piece], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pad = "    ".repeat(self.indent);
        for piece in pieces {
            match piece {
                Piece::Tokens(tokens) => write!(f, "{tokens} ")?,
                Piece::Block(steps) => {
                    writeln!(f, "{{")?;
                    fmt::Display::fmt(&Steps { program: self.program, steps, indent: self.indent + 1 }, f)?;
                    write!(f, "{pad}}} ")?;
                }
                Piece::Braces(pieces) => {
                    write!(f, "{{ ")?;
                    self.pieces(pieces, f)?;
                    write!(f, "}} ")?;
                }
            }
        }
        Ok(())
    }
}
