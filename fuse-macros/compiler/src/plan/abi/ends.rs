//! How the blocks of a launch find what they work for: each takes the block behind its last one, and a table of these is searched.

/// The table, with room for so many. What is room only begins where all ends, so no block finds it.
pub fn ends(room: usize, blocks: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut end = 0;
    let ends = blocks.into_iter().map(|blocks| {
        end += blocks;
        end
    });
    let mut ends: Vec<u32> = ends.collect();
    ends.resize(room, end);
    ends.into_iter().flat_map(u32::to_ne_bytes).collect()
}
