//! Helpers of generated text, and which of them a text needs.

use std::collections::BTreeSet;

/// A piece of text and what it defines.
struct Helper {
    /// Identifiers that ask for this piece; of several in one string all must be there.
    names: &'static [&'static str],
    /// The text.
    text: &'static str,
}

impl Helper {
    fn is_asked_for(&self, words: &BTreeSet<&str>) -> bool {
        self.names.iter().any(|names| names.split(' ').all(|name| words.contains(name)))
    }
}

macro_rules! helpers {
    ($($file:literal: $($name:literal)*;)*) => {
        &[$(Helper { names: &[$($name),*], text: include_str!(concat!("helpers/", $file, ".cuh")) }),*]
    };
}

/// In an order in which every piece finds what it uses before it.
const HELPERS: &[Helper] = helpers! {
    "behind": "fuse_behind";
    "f16": "fuse_f16" "fuse_to_f16";
    "bf16": "fuse_bf16" "fuse_to_bf16";
    "e4m3": "fuse_e4m3" "fuse_to_e4m3";
    "convert": "fuse_to_compute";
    "store": "fuse_element";
    "store_f16": "fuse_f16";
    "store_bf16": "fuse_bf16";
    "store_e4m3": "fuse_e4m3";
    "round": "fuse_rounded";
    "limits": "fuse_limits";
    "cast": "fuse_cast" "fuse_same";
    "index": "fuse_extents" "fuse_strides" "fuse_at" "fuse_unravel" "fuse_offset";
    "inner": "fuse_along";
    "bool": "fuse_bool";
    "tile": "fuse_tile";
    "access": "fuse_read" "fuse_write" "fuse_pack" "fuse_word";
    "fault": "fuse_fault" "fuse_note";
    "failed": "fuse_failed";
    "divisor": "fuse_divisor_of";
    "axis": "fuse_axis";
    "gather": "fuse_gather";
    "scatter": "fuse_target";
    "philox": "fuse_draw";
    "sum": "fuse_sum" "fuse_plus";
    "prod": "fuse_prod" "fuse_times";
    "extreme": "fuse_largest" "fuse_smallest" "fuse_below" "fuse_larger" "fuse_smaller";
    "arg": "fuse_arg" "fuse_found";
    "lanes": "fuse_lanes" "fuse_exchange" "fuse_shuffle" "fuse_from_first" "fuse_over_lanes";
    "tree": "fuse_tree" "fuse_blocks_per_chunk";
    "blocks": "fuse_blocks";
    "few_blocks": "fuse_few_blocks";
    "resident": "fuse_room" "fuse_arrivals";
    "last": "fuse_last" "fuse_fresh";
    "staged": "fuse_over_rows";
    "split": "fuse_join_chunks";
    "columns": "fuse_chunk_rows" "fuse_join_lanes" "fuse_join_columns";
    "matrix": "fuse_matrix" "fuse_shape" "fuse_part" "fuse_side" "fuse_packs";
    "product": "fuse_product" "fuse_multiply_add";
    "skinny": "fuse_skinny" "fuse_strip" "fuse_read_some" "fuse_settle";
    "slim": "fuse_slim";
    "multiply_f16": "fuse_multiply_halves fuse_f16";
    "multiply_bf16": "fuse_multiply_halves fuse_bf16";
    "ring": "fuse_ring" "fuse_lap" "fuse_shared_at";
    "wgmma_groups": "fuse_wgmma_begin";
    "wgmma": "fuse_wgmma" "fuse_pieces";
    "turn": "fuse_turn";
    "wgmma_halves": "fuse_wgmma_halves";
    "wgmma_f16": "fuse_wgmma_halves fuse_f16";
    "wgmma_bf16": "fuse_wgmma_halves fuse_bf16";
    "wgmma_e4m3": "fuse_wgmma_float8";
    "halves": "fuse_halves";
    "float8": "fuse_float8";
    "shares": "fuse_shares";
    "third_pair": "fuse_third_pair" "fuse_bf16_pair";
    "thirds": "fuse_thirds";
    "barrier": "fuse_barrier" "fuse_await" "fuse_copy";
    "wgmma_heads": "fuse_wgmma_heads" "fuse_lie" "fuse_place" "fuse_hold";
    "wgmma_heads_f16": "fuse_wgmma_heads fuse_f16";
    "wgmma_heads_bf16": "fuse_wgmma_heads fuse_bf16";
    "heads": "fuse_heads" "fuse_attention_shape" "fuse_query_tile" "fuse_rows_before" "fuse_put_log";
    "head_rows": "fuse_head_row" "fuse_copy_rows" "fuse_left" "fuse_group_turns" "fuse_multiply_across" "fuse_narrow" "fuse_put_row";
    "drops": "fuse_dropped" "fuse_kept" "fuse_is_kept" "fuse_draw_kept" "fuse_multipliers" "fuse_first_if_same";
    "warp_rows": "fuse_square" "fuse_warp_left" "fuse_add_across";
    "attention_warps": "fuse_attention_warps";
    "back_scores": "fuse_back_scores" "fuse_inner" "fuse_copy_numbers";
    "attention": "fuse_attention";
    "attention_back": "fuse_attention_dq" "fuse_attention_dkv";
    "third_rows": "fuse_range" "fuse_third_right" "fuse_third_left" "fuse_third_product" "fuse_add_thirds_across" "fuse_split_step" "fuse_enlarge" "fuse_multiply_plainly" "fuse_add_plainly_across";
    "third_ring": "fuse_third_ring" "fuse_put_line";
    "attention_floats": "fuse_attention_floats";
    "attention_floats_back": "fuse_attention_floats_dq" "fuse_attention_floats_dkv";
    "attention_back_warps": "fuse_attention_warps_dq" "fuse_attention_warps_dkv";
    "attention_any": "fuse_attention_any" "fuse_attention_any_dq" "fuse_attention_any_dkv";
    "tensor": "fuse_product fuse_f16" "fuse_product fuse_bf16" "fuse_product fuse_e4m3";
    "tensor_f16": "fuse_product fuse_f16";
    "tensor_bf16": "fuse_product fuse_bf16";
    "tensor_e4m3": "fuse_product fuse_e4m3";
};

/// The helpers a text needs, with those they need themselves, in order. `generic`: element types are defines and may be halves.
pub(super) fn needed(text: &str, generic: bool) -> String {
    let halves = if generic { "fuse_f16 fuse_bf16" } else { "" };
    let mut wanted = vec![false; HELPERS.len()];
    let mut words: BTreeSet<&str> = identifiers(text).chain(identifiers(halves)).collect();
    while let Some(k) = (0..HELPERS.len()).find(|k| !wanted[*k] && HELPERS[*k].is_asked_for(&words)) {
        wanted[k] = true;
        words.extend(identifiers(HELPERS[k].text));
    }
    let chosen = HELPERS.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    chosen.map(|(helper, _)| format!("{}\n", helper.text)).collect()
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("fuse_"))
}
