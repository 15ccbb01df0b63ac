//! One group as a kernel: its members become statements, what lies outside becomes leaves.

use super::facts::{axis_attr, reduced_last, reduction};
use super::group::{Group, Member};
use super::groups::lines_up;
use super::lower::Lower;
use super::views::{behind_views, broadcast, normal, source_axis};
use super::walk::is_uniform;
use crate::graph::Node;
use crate::op::{Attr, Class, Source, Val};
use crate::plan::{BufId, Expr, Kernel, Kind, Leaf, LeafSource, Level, Lookup, Operand, Stmt, StmtId, Store, View};
use crate::types::DType;
use std::collections::{BTreeSet, HashMap};

/// A kernel under construction.
pub struct KernelBuilder<'l, 'g> {
    lower: &'l mut Lower<'g>,
    group: &'l Group,
    kernel: Kernel,
    /// Statements by value, normalised chain and requested level.
    memo: HashMap<(Val, Vec<View>, Level), StmtId>,
    places: BTreeSet<u32>,
}

impl<'l, 'g> KernelBuilder<'l, 'g> {
    /// An empty kernel over a group's domain.
    pub fn new(lower: &'l mut Lower<'g>, group: &'l Group, kind: Kind) -> Self {
        let kernel = Kernel {
            name: String::new(),
            kind,
            domain: group.domain.clone(),
            reduced: group.reduced as u32,
            leaves: vec![],
            stmts: vec![],
            stores: vec![],
            asks: false,
            heeds: false,
            ops: vec![],
        };
        KernelBuilder { lower, group, kernel, memo: HashMap::new(), places: BTreeSet::new() }
    }

    /// The finished kernel.
    pub fn finish(mut self) -> Kernel {
        self.kernel.ops = self.places.into_iter().collect();
        self.kernel
    }

    /// Computes a member and stores it in a buffer.
    pub fn store_member(&mut self, member: &Member, buf: BufId) {
        let val = Val { node: member.node, out: 0 };
        let stmt = self.at_level(val, &member.onto, member.level);
        self.store(Operand { buf, views: member.onto.clone() }, stmt);
    }

    /// Stores a statement.
    pub fn store(&mut self, to: Operand, value: StmtId) {
        self.kernel.stores.push(Store { to, value, scatter: None });
    }

    /// Stores a statement at a computed position.
    pub fn scatter(&mut self, to: Operand, value: StmtId, scatter: crate::plan::Scatter) {
        self.kernel.stores.push(Store { to, value, scatter: Some(scatter) });
    }

    /// A value at exactly this level: one that is the same along a row is copied to every point.
    pub fn at_level(&mut self, val: Val, chain: &[View], level: Level) -> StmtId {
        let id = self.value(val, chain, level);
        if self.kernel.stmt(id).level == level {
            return id;
        }
        let (dtype, place) = (self.kernel.stmt(id).dtype, self.kernel.stmt(id).place);
        self.kernel.push(Stmt { expr: Expr::Cast(id), dtype, round: false, level, name: None, place })
    }

    /// The statement for a value under a chain of views that brings it onto a level.
    pub fn value(&mut self, val: Val, chain: &[View], level: Level) -> StmtId {
        let graph = self.lower.graph;
        let (root, views) = behind_views(graph, val);
        let dims = &graph.node(root).outs[root.out as usize].dims;
        let chain = normal(dims, &[views.as_slice(), chain].concat());
        if let Some(member) = self.group.member(root.node)
            && lines_up(graph, root, self.group, member, &chain, level)
        {
            return self.member(member);
        }
        let key = (root, chain.clone(), level);
        if let Some(&known) = self.memo.get(&key) {
            return known;
        }
        let id = self.outside(root, chain, level);
        self.memo.insert(key, id);
        id
    }

    /// A member where it is computed.
    pub fn member(&mut self, member: &Member) -> StmtId {
        let val = Val { node: member.node, out: 0 };
        let key = (val, member.onto.clone(), member.level);
        if let Some(&known) = self.memo.get(&key) {
            return known;
        }
        let id = self.compute(val, &member.onto.clone(), member.level);
        self.memo.insert(key, id);
        id
    }

    /// A value that is no member, or a member at other positions: computed again or read from memory.
    fn outside(&mut self, root: Val, chain: Vec<View>, level: Level) -> StmtId {
        let node = self.lower.graph.node(root);
        match node.op.class {
            Class::Source(Source::Constant | Source::Scalar | Source::Size) => self.uniform(root, level),
            Class::Source(Source::Index) => self.load(LeafSource::Index(node.outs[0].dims.clone()), root, chain, level),
            _ if self.lower.computes_again(root, self.group, &chain) => self.compute(root, &chain, level),
            _ => {
                let buf = self.lower.buffer(root);
                self.load(LeafSource::Buf(buf), root, chain, level)
            }
        }
    }

    /// A value that is the same everywhere.
    fn uniform(&mut self, root: Val, level: Level) -> StmtId {
        let node = self.lower.graph.node(root);
        let expr = match &node.attrs[0] {
            Attr::Lit(literal) => Expr::Const(*literal),
            Attr::Int(scalar) => Expr::Scalar(*scalar as u32),
            Attr::Dim(dim) => Expr::Size(dim.clone()),
            other => unreachable!("`{}` with {other:?}", node.op.name),
        };
        self.push_for(node, expr, level)
    }

    fn load(&mut self, source: LeafSource, root: Val, views: Vec<View>, level: Level) -> StmtId {
        let node = self.lower.graph.node(root);
        let dtype = node.outs[root.out as usize].dtype;
        self.read(Leaf { source, views, level, indexed: None }, dtype, node.name.clone(), node.place)
    }

    fn read(&mut self, leaf: Leaf, dtype: DType, name: Option<String>, place: u32) -> StmtId {
        let (level, leaf) = (leaf.level, self.kernel.leaf(leaf));
        self.kernel.push(Stmt { expr: Expr::Load(leaf), dtype, round: false, level, name, place })
    }

    /// Computes a node's result at the positions its chain gives.
    fn compute(&mut self, val: Val, chain: &[View], level: Level) -> StmtId {
        let graph = self.lower.graph;
        let node = graph.node(val);
        self.places.insert(node.place);
        match node.op.class {
            Class::Reduce(_) => self.reduce(val, level),
            Class::Matmul => self.push_for(node, Expr::Product(0), Level::Elem),
            Class::Gather => self.gather(val, chain, level),
            Class::Scan(kind) => {
                let value = self.at_level(node.args[0], chain, Level::Elem);
                self.push_for(node, Expr::Scan(kind, value), Level::Elem)
            }
            Class::Source(_) => self.draw(val, chain, level),
            _ => self.apply(node, chain, level),
        }
    }

    fn apply(&mut self, node: &Node, chain: &[View], level: Level) -> StmtId {
        let graph = self.lower.graph;
        let dims = &node.outs[0].dims;
        let onto = |arg: Val| {
            let from = &graph.node(arg).outs[arg.out as usize].dims;
            [broadcast(from, dims), chain.to_vec()].concat()
        };
        let is_uniform = |arg: Val| is_uniform(graph.node(arg).op.class);
        let mut args: Vec<Option<StmtId>> = node.args.iter().map(|_| None).collect();
        for (slot, &arg) in args.iter_mut().zip(&node.args).filter(|(_, arg)| !is_uniform(**arg)) {
            *slot = Some(self.value(arg, &onto(arg), level));
        }
        // What does not change along a row is computed once a row; constants follow the operands they meet.
        let made = args.iter().flatten().map(|&a| self.kernel.stmt(a).level).max().unwrap_or(level);
        for (slot, &arg) in args.iter_mut().zip(&node.args).filter(|(_, arg)| is_uniform(**arg)) {
            *slot = Some(self.value(arg, &onto(arg), made));
        }
        let args: Vec<StmtId> = args.into_iter().map(|a| a.expect("both loops cover every operand")).collect();
        let expr = match node.op.name {
            "contiguous" => return args[0],
            "cast" => Expr::Cast(args[0]),
            _ => Expr::Apply(node.op, args),
        };
        self.push_for(node, expr, made)
    }

    fn reduce(&mut self, val: Val, level: Level) -> StmtId {
        let graph = self.lower.graph;
        let node = graph.node(val);
        let (kind, axes) = reduction(graph, val.node);
        let operand = &graph.node(node.args[0]).outs[node.args[0].out as usize].dims;
        let value = if level == Level::All {
            self.at_level(node.args[0], &self.group.onto_rows(operand), Level::Row)
        } else {
            let order = normal(operand, &[View::Permute(reduced_last(operand.len(), &axes))]);
            self.at_level(node.args[0], &order, Level::Elem)
        };
        self.push_for(node, Expr::Reduce(kind, value), level)
    }

    fn draw(&mut self, val: Val, chain: &[View], level: Level) -> StmtId {
        let node = self.lower.graph.node(val);
        let leaf = Leaf {
            source: LeafSource::Index(node.outs[0].dims.clone()),
            views: normal(&node.outs[0].dims, chain),
            level,
            indexed: None,
        };
        let index = self.read(leaf, DType::I64, None, node.place);
        let site = self.lower.draw_site(val.node);
        let normal = node.op.class == Class::Source(Source::Normal);
        let expr = if normal { Expr::Normal(site, index) } else { Expr::Uniform(site, index) };
        self.push_for(node, expr, level)
    }

    fn gather(&mut self, val: Val, chain: &[View], level: Level) -> StmtId {
        let graph = self.lower.graph;
        let node = graph.node(val);
        let axis = axis_attr(graph, val.node, 0);
        let dims = &node.outs[0].dims;
        let (table, mut views) = behind_views(graph, node.args[0]);
        let rank = graph.node(table).outs[table.out as usize].rank();
        let indexed = source_axis(rank, &views, axis).expect("the preparation pass copied every other table");
        views.push(View::Expand(dims.clone()));
        views.extend(chain.to_vec());
        let index_dims = &graph.node(node.args[1]).outs[node.args[1].out as usize].dims;
        let index_chain = [broadcast(index_dims, dims), chain.to_vec()].concat();
        let index = self.at_level(node.args[1], &index_chain, level);
        let buf = self.lower.buffer(table);
        let indexed = Some(Lookup { axis: indexed as u32, place: node.place });
        let leaf = self.kernel.leaf(Leaf { source: LeafSource::Buf(buf), views, level, indexed });
        self.push_for(node, Expr::Gather { leaf, index }, level)
    }

    fn push_for(&mut self, node: &Node, expr: Expr, level: Level) -> StmtId {
        let dtype = node.outs[0].dtype;
        let round = node.round && dtype.compute() != dtype;
        self.kernel.push(Stmt { expr, dtype, round, level, name: node.name.clone(), place: node.place })
    }
}
