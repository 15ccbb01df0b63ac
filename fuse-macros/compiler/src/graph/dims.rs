//! Every formula in a graph.

use super::Graph;
use crate::op::Attr;
use crate::types::Dim;

impl Graph {
    /// Calls `visit` for every formula in types, attributes and checks, in program order.
    pub fn for_each_dim(&self, visit: &mut impl FnMut(&Dim)) {
        for node in &self.nodes {
            node.outs.iter().flat_map(|ty| &ty.dims).for_each(&mut *visit);
            for attr in &node.attrs {
                match attr {
                    Attr::Dim(dim) => visit(dim),
                    Attr::Dims(dims) => dims.iter().for_each(&mut *visit),
                    _ => {}
                }
            }
        }
        for (_, check) in &self.checks {
            visit(&check.left);
            visit(&check.right);
        }
    }

    /// Replaces every formula.
    pub fn map_dims(&mut self, replace: &impl Fn(&Dim) -> Dim) {
        for node in &mut self.nodes {
            for dim in node.outs.iter_mut().flat_map(|ty| &mut ty.dims) {
                *dim = replace(dim);
            }
            for attr in &mut node.attrs {
                match attr {
                    Attr::Dim(dim) => *dim = replace(dim),
                    Attr::Dims(dims) => dims.iter_mut().for_each(|dim| *dim = replace(dim)),
                    _ => {}
                }
            }
        }
        for (_, check) in &mut self.checks {
            check.left = replace(&check.left);
            check.right = replace(&check.right);
        }
    }
}
