//! The body of a compiled function: its program as Rust.

use super::given::{given, is_one_launch};
use super::restore::restoring;
use super::signature::Signature;
use crate::emit::loops;
use crate::op::Val;
use crate::options::Mode;
use crate::parse::{Branch, Entry, Joined, Launch, Loop, OpenRank, Out, Piece, Program, Size, Step};
use crate::pipeline::{Compiled, Followed};
use crate::plan::Plan;
use crate::types::{DType, OPEN_RANK};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// What the body of a compiled function is made from.
pub struct Body<'a> {
    /// The program and its plans.
    pub compiled: &'a Compiled,
    /// The function's signature.
    pub signature: &'a Signature,
    /// A call of the original.
    pub eager: TokenStream,
    /// An expression for the CUDA source.
    pub cuda: &'a TokenStream,
}

impl Body<'_> {
    /// The statements of the body.
    pub fn tokens(&self) -> TokenStream {
        let entry = entry(self.program());
        let steps = self.steps(&self.program().body);
        let steps = if is_one_launch(&self.program().body) { steps } else { restoring(&steps, self.signature) };
        let eager = restoring(&self.eager, self.signature);
        let wants_eager = match &self.compiled.followed {
            Some(Followed { constants, .. }) => quote!(wants_eager_for(&[#(#constants.raw()),*])),
            None => quote!(wants_eager()),
        };
        let beyond = self.program().open_rank.as_ref().map(|OpenRank { name, least }| {
            let least = Literal::usize_unsuffixed(*least);
            quote!(if !::fuse_runtime::rt::is_open_to::<#name>(#least) { return { #eager }; })
        });
        let cubins_change = cubins_change();
        let body = quote! {
            // A change of the variable has the function compiled, and its stages shown, again.
            let _ = ::core::option_env!("FUSE_DUMP");
            #cubins_change
            #beyond
            #entry
            if ::fuse_runtime::rt::#wants_eager {
                return { #eager };
            }
            #steps
        };
        self.signature.returned(&body)
    }

    fn program(&self) -> &Program {
        &self.compiled.program
    }

    fn steps(&self, steps: &[Step]) -> TokenStream {
        steps.iter().map(|step| self.step(step)).collect()
    }

    fn step(&self, step: &Step) -> TokenStream {
        match step {
            Step::Host(tokens) | Step::Value(tokens) => tokens.clone(),
            Step::Capture { local, value } => quote!(let #local = #value;),
            Step::Scalar { local, dtype, value } => {
                let ty = self.element(*dtype);
                // What is no scalar is an error at the operand.
                let at = value.clone().into_iter().next().map_or_else(Span::mixed_site, |first| first.span());
                let read =
                    quote_spanned!(Span::mixed_site().located_at(at)=> ::fuse_runtime::rt::weak_scalar::<#ty, _>);
                quote!(let #local = #read(#value);)
            }
            Step::Size(found) => size(self.program(), found),
            Step::Launch(launch) => self.launch(launch),
            Step::Loop(found) => self.device_loop(found),
            Step::Branch(found) => self.device_branch(found),
            // A GPU may find out later that the call that makes the value has failed.
            Step::Write { target, value } => quote!(::fuse_runtime::rt::replace(&mut *#target, #value);),
            Step::Nest(pieces) => self.pieces(pieces),
        }
    }

    fn pieces(&self, pieces: &[Piece]) -> TokenStream {
        let piece = |piece: &Piece| match piece {
            Piece::Tokens(tokens) => tokens.clone(),
            Piece::Block(steps) => {
                let steps = self.steps(steps);
                quote!({ #steps })
            }
            Piece::Braces(pieces) => {
                let pieces = self.pieces(pieces);
                quote!({ #pieces })
            }
        };
        pieces.iter().map(piece).collect()
    }

    fn launch(&self, launch: &Launch) -> TokenStream {
        let raws: Vec<Ident> = (0..launch.outs.len()).map(raw).collect();
        let results = launch.outs.iter().zip(&raws).map(|(out, raw)| self.out(out, raw));
        let count = launch.outs.len();
        let call = self.call(launch);
        // A panic is located at the outermost expansion that the call's tokens come from, so all of them, the parentheses
        // included, are the op's own.
        let launched = quote_spanned!(launch.at=> ::fuse_runtime::rt::launched::<#count>(#call));
        quote! {
            let [#(#raws),*] = #launched;
            #(#results)*
        }
    }

    fn out(&self, out: &Out, raw: &Ident) -> TokenStream {
        let (local, value) = (&out.local, self.tensor(out.dtype, out.rank, raw));
        let mutability = out.mutable.then(|| quote!(mut));
        quote!(let #mutability #local = #value;)
    }

    /// A block that runs a graph: its loops, its plans, and the call.
    fn call(&self, launch: &Launch) -> TokenStream {
        let name = format_ident!("SEGMENT");
        let (segment, inputs) = (self.segment(&name, launch), self.inputs(launch));
        let followed = self.compiled.followed.as_ref();
        match followed.and_then(|followed| followed.splits[launch.segment].as_ref()) {
            Some(split) => {
                let (forward, backward) = (self.way(&split.forward), self.way(&split.backward));
                let text = raw_string(&ron::to_string(&split.derivative).expect("a derivative is plain data"));
                quote! {{
                    #segment
                    static DERIVATIVE: ::fuse_runtime::rt::Derivative = ::fuse_runtime::rt::Derivative::new(#text);
                    #name.followed(#inputs, &DERIVATIVE, #forward, #backward)
                }}
            }
            None if followed.is_some() => quote! {{
                #segment
                #name.called_by_a_tape(#inputs)
            }},
            None => quote! {{
                #segment
                #name.call(#inputs)
            }},
        }
    }

    /// A closure that runs a graph on what it is given.
    fn way(&self, plans: &[Plan]) -> TokenStream {
        let name = format_ident!("SEGMENT");
        let (segment, params) = (self.segment_of(&name, plans), self.params());
        let bodies = self.bodies(plans);
        quote! {
            |tensors, scalars, host_ints, device| {
                #segment
                #name.call(::fuse_runtime::rt::Inputs {
                    params: &[#(#params),*],
                    tensors,
                    given: &[],
                    scalars,
                    host_ints,
                    bodies: &[#(&#bodies),*],
                    device,
                })
            }
        }
    }

    /// A loop over two graphs; the variables it changes hold their last values behind it.
    fn device_loop(&self, found: &Loop) -> TokenStream {
        let (test, turn) = (format_ident!("TEST"), format_ident!("TURN"));
        let segments = [self.segment(&test, &found.test), self.segment(&turn, &found.turn)];
        let inputs = [self.inputs(&found.test), self.inputs(&found.turn)];
        let [test_inputs, turn_inputs] = &inputs;
        let state = found.state.iter().map(|state| {
            let (local, read) = (&state.local, option(state.read));
            quote!((#local.raw(), #read))
        });
        let raws: Vec<Ident> = (0..found.state.len()).map(raw).collect();
        let results = found.state.iter().zip(&raws).map(|(state, raw)| {
            let (local, value) = (&state.local, self.tensor(state.dtype, state.rank, raw));
            quote!(#local = #value;)
        });
        let count = raws.len();
        let launched = quote_spanned! {found.turn.at=>
            ::fuse_runtime::rt::launched::<#count>({
                #(#segments)*
                ::fuse_runtime::rt::while_loop(&[#(#state),*], (&#test, #test_inputs), (&#turn, #turn_inputs))
            })
        };
        quote! {
            let [#(#raws),*] = #launched;
            #(#results)*
        }
    }

    /// A branch over two graphs, and the variables that hold what it gives.
    fn device_branch(&self, found: &Branch) -> TokenStream {
        let names = [format_ident!("THEN"), format_ident!("OTHERWISE")];
        let arms = std::iter::zip(&names, &found.arms);
        let segments = arms.clone().filter_map(|(name, arm)| Some(self.segment(name, arm.as_ref()?)));
        let parts = arms.map(|(name, arm)| match arm {
            Some(arm) => {
                let inputs = self.inputs(arm);
                quote!(::core::option::Option::Some((&#name, #inputs)))
            }
            None => quote!(::core::option::Option::None),
        });
        let raws: Vec<Ident> = (0..found.joined.len()).map(raw).collect();
        let (mut sources, mut results) = (vec![], vec![]);
        for (joined, raw) in found.joined.iter().zip(&raws) {
            let (from, result) = self.joined(joined, raw);
            sources.push(from);
            results.push(result);
        }
        let (test, count) = (&found.test, raws.len());
        let at = found.arms.iter().flatten().map(|arm| arm.at).next().unwrap_or_else(Span::call_site);
        let launched = quote_spanned! {at=>
            ::fuse_runtime::rt::launched::<#count>({
                #(#segments)*
                ::fuse_runtime::rt::branch(#test.raw(), [#(#parts),*], &[#(#sources),*])
            })
        };
        quote! {
            let [#(#raws),*] = #launched;
            #(#results)*
        }
    }

    /// Where something that a branch gives comes from in each arm, and how it gets to its variable.
    fn joined(&self, joined: &Joined, raw: &Ident) -> (TokenStream, TokenStream) {
        let result = |k: usize| quote!(::fuse_runtime::rt::Joined::Result(#k));
        match joined {
            Joined::Variable { state, from } => {
                let (local, value) = (&state.local, self.tensor(state.dtype, state.rank, raw));
                let old = || quote!(::fuse_runtime::rt::Joined::Old(#local.raw()));
                let [then, otherwise] = from.map(|k| k.map_or_else(old, result));
                (quote!([#then, #otherwise]), quote!(#local = #value;))
            }
            Joined::Value { out, from } => {
                let [then, otherwise] = from.map(result);
                (quote!([#then, #otherwise]), self.out(out, raw))
            }
        }
    }

    /// The items of a graph: its loops, and a static of this name with its plans.
    fn segment(&self, name: &Ident, launch: &Launch) -> TokenStream {
        self.segment_of(name, &self.compiled.plans[launch.segment])
    }

    fn segment_of(&self, name: &Ident, plans: &[Plan]) -> TokenStream {
        let items = plans.iter().map(loops::tokens);
        let texts = plans.iter().map(|plan| raw_string(&ron::to_string(plan).expect("a plan is plain data")));
        let (cuda, config) = (self.cuda, self.config());
        let made = match (cubins(plans), config) {
            (None, None) => quote!(new(&[#(#texts),*], #cuda)),
            (None, Some(config)) => quote!(configured(&[#(#texts),*], #cuda, #config)),
            (Some(cubins), config) => {
                let config = config.unwrap_or_else(|| quote!(::fuse_runtime::rt::Config::DEFAULT));
                quote!(compiled(&[#(#texts),*], #cuda, #config, &[#cubins]))
            }
        };
        quote! {
            #(#items)*
            static #name: ::fuse_runtime::rt::Segment = ::fuse_runtime::rt::Segment::#made;
        }
    }

    /// What a graph is called with.
    fn inputs(&self, launch: &Launch) -> TokenStream {
        let (params, bodies) = (self.params(), self.bodies(&self.compiled.plans[launch.segment]));
        let Launch { inputs, scalars, sizes, .. } = launch;
        let given = given(&self.program().body, self.signature);
        let graph = &self.program().segments[launch.segment];
        let is_open = |val: &Val| self.is_open(graph.nodes[val.node as usize].outs[val.out as usize].rank());
        let tensors = inputs.iter().zip(&graph.inputs).map(|(input, val)| match is_open(val) {
            true => quote!(&::fuse_runtime::rt::widened(&#input)),
            false => quote!(#input.raw()),
        });
        quote! {
            ::fuse_runtime::rt::Inputs {
                params: &[#(#params),*],
                tensors: &[#(#tensors),*],
                given: &[#(#given),*],
                scalars: &[#(#scalars),*],
                host_ints: &[#(#sizes),*],
                bodies: &[#(&#bodies),*],
                device: ::fuse_runtime::Device::cpu(),
            }
        }
    }

    /// What the generic element types stand for.
    fn params(&self) -> Vec<TokenStream> {
        let generics = self.program().generics.iter();
        generics.map(|ident| quote!(<#ident as ::fuse_runtime::Element>::DTYPE)).collect()
    }

    /// The loops of plans.
    fn bodies(&self, plans: &[Plan]) -> Vec<TokenStream> {
        let params: Vec<TokenStream> = self.program().generics.iter().map(|ident| quote!(#ident)).collect();
        plans.iter().flat_map(|plan| loops::instances(plan, &params)).collect()
    }

    /// A typed tensor from what a graph gave.
    fn tensor(&self, dtype: DType, rank: usize, raw: &Ident) -> TokenStream {
        let ty = self.element(dtype);
        if let Some(OpenRank { name, .. }) = self.program().open_rank.as_ref().filter(|_| self.is_open(rank)) {
            return quote!(::fuse_runtime::rt::narrowed::<#ty, #name>(#raw));
        }
        let rank = Literal::usize_unsuffixed(rank);
        quote!(::fuse_runtime::Tensor::<#ty, #rank>::from_raw(#raw))
    }

    /// Whether a tensor of this rank in a graph is one of open rank in the function.
    fn is_open(&self, rank: usize) -> bool {
        self.program().open_rank.is_some() && rank == OPEN_RANK
    }

    /// What the attribute says about how the graphs are called, where it says something.
    fn config(&self) -> Option<TokenStream> {
        let Compiled { mode, dynamic, .. } = *self.compiled;
        if mode == Mode::Default && dynamic.is_none() {
            return None;
        }
        let mode = format_ident!("{mode:?}");
        let dynamic = dynamic.map_or_else(|| quote!(None), |dynamic| quote!(Some(#dynamic)));
        Some(quote!(::fuse_runtime::rt::Config {
            mode: ::fuse_runtime::rt::Mode::#mode,
            dynamic: ::core::option::Option::#dynamic,
        }))
    }

    /// An element type as Rust.
    fn element(&self, dtype: DType) -> TokenStream {
        match dtype {
            DType::Param(n) => {
                let ident = &self.program().generics[n as usize];
                quote!(#ident)
            }
            DType::F16 => quote!(::fuse_runtime::prelude::f16),
            DType::BF16 => quote!(::fuse_runtime::prelude::bf16),
            DType::F8E4M3 => quote!(::fuse_runtime::prelude::f8e4m3),
            dtype => {
                let name = format_ident!("{}", dtype.name());
                quote!(#name)
            }
        }
    }
}

/// An extent is read, if something needs it.
fn size(program: &Program, Size { local, sym, of, axis, is_open }: &Size) -> TokenStream {
    let axis = Literal::usize_unsuffixed(*axis);
    match program.needed.contains(sym) {
        true if *is_open => quote!(let #local = ::fuse_runtime::rt::widened_size(&#of, #axis) as i64;),
        true => quote!(let #local = #of.size(#axis) as i64;),
        false => quote!(),
    }
}

/// Reads the dims and checks what `#[dims]` says.
pub fn entry(program: &Program) -> TokenStream {
    program.entry.iter().map(|entry| entry_of(program, entry)).collect()
}

fn entry_of(program: &Program, entry: &Entry) -> TokenStream {
    let function = &program.name;
    match entry {
        Entry::Size(found) => size(program, found),
        Entry::Solved { local, factor, offset, extent, .. } => {
            let (param, axis, text) = (&extent.param, Literal::usize_unsuffixed(extent.axis), &extent.text);
            let name = param.to_string();
            quote! {
                let #local = ::fuse_runtime::rt::solve_dim(#function, #name, #axis, #text, #param.size(#axis), #factor, #offset);
            }
        }
        Entry::Check { extent, expected } => {
            let (param, axis, text) = (&extent.param, Literal::usize_unsuffixed(extent.axis), &extent.text);
            let name = param.to_string();
            let check = quote! {
                ::fuse_runtime::rt::check_dim(#function, #name, #axis, #text, #param.size(#axis), #expected);
            };
            match extent.is_optional {
                true => quote!(if let ::core::option::Option::Some(#param) = #param.as_ref() { #check }),
                false => check,
            }
        }
        Entry::Count { list, name, parts } => {
            quote!(::fuse_runtime::rt::check_count(#name, #list.len(), #parts);)
        }
    }
}

/// The machine code of a graph's kernels, where some was compiled.
#[cfg(feature = "cubins")]
fn cubins(plans: &[Plan]) -> Option<TokenStream> {
    let cubins = crate::emit::cubins::of(plans);
    let entries = cubins.iter().map(|cubin| {
        let (kernel, arch, code) = (&cubin.kernel, &cubin.arch, Literal::byte_string(&cubin.code));
        let params = cubin.params.iter().map(|dtype| format_ident!("{dtype:?}"));
        let variant = raw_string(&ron::to_string(&cubin.variant).expect("a variant is plain data"));
        quote! {
            ::fuse_runtime::rt::Cubin {
                kernel: #kernel,
                arch: #arch,
                params: &[#(::fuse_runtime::rt::DType::#params),*],
                variant: #variant,
                code: #code,
            }
        }
    });
    (!cubins.is_empty()).then(|| quote!(#(#entries),*))
}

#[cfg(not(feature = "cubins"))]
fn cubins(_: &[Plan]) -> Option<TokenStream> {
    None
}

/// Has the function compiled again when the architectures change, where some may be asked for.
fn cubins_change() -> Option<TokenStream> {
    cfg!(feature = "cubins").then(|| quote!(let _ = ::core::option_env!("FUSE_ARCHS");))
}

/// The variable of a result before it has a type.
fn raw(k: usize) -> Ident {
    format_ident!("__raw{k}", span = Span::mixed_site())
}

fn option(number: Option<usize>) -> TokenStream {
    match number {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}

/// A string literal that reads in `cargo expand` as it is.
pub fn raw_string(text: &str) -> TokenStream {
    let longest = text.split('"').skip(1).map(|after| after.chars().take_while(|c| *c == '#').count()).max();
    let hashes = "#".repeat(longest.map_or(1, |n| n + 1));
    format!("r{hashes}\"{text}\"{hashes}").parse().expect("a raw string is a token")
}
