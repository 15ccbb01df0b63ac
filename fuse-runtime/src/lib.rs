//! Tensors, eager ops, JIT loading and dispatch for functions compiled by fuse.
