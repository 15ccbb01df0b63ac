//! A graph as text: a line per node, for snapshots and dumps.

use super::{Graph, SymSource};
use crate::op::{Attr, Relation, Val};
use crate::types::{Dim, Sym, Ty};
use std::fmt;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, sym) in self.syms.iter().enumerate() {
            if let SymSource::Host(k) = sym.source {
                writeln!(f, "{} = host {k} (s{n})", sym.name)?;
            }
        }
        for (n, node) in self.nodes.iter().enumerate() {
            let outs: Vec<String> = node.outs.iter().map(|ty| self.show_ty(ty)).collect();
            let attrs: Vec<String> = node.attrs.iter().map(|attr| self.show_attr(attr)).collect();
            let args: Vec<String> = node.args.iter().map(|&arg| show_val(arg)).chain(attrs).collect();
            write!(f, "%{n}: {} = {}({})", outs.join(", "), node.op.name, args.join(", "))?;
            match &node.name {
                Some(name) => writeln!(f, "  // {name}")?,
                None => writeln!(f)?,
            }
        }
        for (node, check) in &self.checks {
            let between = match check.relation {
                Relation::Equal => "=",
                Relation::Broadcasts => "broadcasts with",
                Relation::Stretches => "stretches to",
            };
            writeln!(f, "check %{node}: {} {between} {}", self.show_dim(&check.left), self.show_dim(&check.right))?;
        }
        writeln!(f, "out {}", self.outs.iter().map(|&out| show_val(out)).collect::<Vec<_>>().join(", "))
    }
}

impl Graph {
    fn show_dim(&self, dim: &Dim) -> String {
        dim.display(&|sym: Sym| self.syms[sym.0 as usize].name.clone()).to_string()
    }

    fn show_dims(&self, dims: &[Dim]) -> String {
        format!("[{}]", dims.iter().map(|dim| self.show_dim(dim)).collect::<Vec<_>>().join(", "))
    }

    fn show_ty(&self, ty: &Ty) -> String {
        format!("{}{}", ty.dtype, self.show_dims(&ty.dims))
    }

    fn show_attr(&self, attr: &Attr) -> String {
        match attr {
            Attr::Int(k) => k.to_string(),
            Attr::Ints(list) => format!("{list:?}"),
            Attr::Float(x) => format!("{x:?}"),
            Attr::Bool(flag) => flag.to_string(),
            Attr::Dim(dim) => self.show_dim(dim),
            Attr::Dims(dims) => self.show_dims(dims),
            Attr::DType(dtype) => dtype.to_string(),
            Attr::Lit(literal) => format!("{literal:?}"),
        }
    }
}

fn show_val(val: Val) -> String {
    match val.out {
        0 => format!("%{}", val.node),
        out => format!("%{}.{out}", val.node),
    }
}
