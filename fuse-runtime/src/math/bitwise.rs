//! Operations on the bits of integers and bools.

use super::value::Value;

/// A compute type with bitwise operators.
pub trait Bitwise: Value {
    /// The bits set in both.
    fn and(self, other: Self) -> Self;
    /// The bits set in at least one.
    fn or(self, other: Self) -> Self;
    /// The bits set in exactly one.
    fn xor(self, other: Self) -> Self;
    /// The bits not set.
    fn not(self) -> Self;
}

/// An integer that can be shifted.
pub trait Shift: Bitwise {
    /// The bits moved up; a count outside of the width gives 0.
    fn left(self, count: Self) -> Self;
    /// The bits moved down, keeping the sign; a count outside of the width gives 0, or -1 for a negative value.
    fn right(self, count: Self) -> Self;
}

macro_rules! bitwise {
    ($($ty:ty)*) => {$(
        impl Bitwise for $ty {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
        }
    )*};
}

bitwise! { i64 i32 u8 bool }

macro_rules! shifts {
    ($($ty:ty, $unsigned:ty;)*) => {$(
        impl Shift for $ty {
            #[inline(always)]
            fn left(self, count: Self) -> Self {
                // As unsigned, a negative count is a large one.
                let inside = (count as $unsigned) < <$ty>::BITS as $unsigned;
                if inside { self.wrapping_shl(count as u32) } else { 0 }
            }
            #[inline(always)]
            fn right(self, count: Self) -> Self {
                let inside = (count as $unsigned) < <$ty>::BITS as $unsigned;
                if inside { self.wrapping_shr(count as u32) } else { sign_fill(self) }
            }
        }
    )*};
}

shifts! {
    i64, u64;
    i32, u32;
    u8,  u8;
}

/// 0, or -1 for a negative value.
#[inline(always)]
fn sign_fill<T: Shift + Default>(x: T) -> T {
    let zero = T::default();
    if x < zero { zero.not() } else { zero }
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $name:ident: $bound:ident::$method:ident($($arg:ident),*);)*) => {$(
        $(#[doc = $doc])*
        #[inline(always)]
        pub fn $name<T: $bound>($($arg: T),*) -> T {
            $bound::$method($($arg),*)
        }
    )*};
}

functions! {
    /// The bits set in both.
    bitwise_and: Bitwise::and(a, b);
    /// The bits set in at least one.
    bitwise_or: Bitwise::or(a, b);
    /// The bits set in exactly one.
    bitwise_xor: Bitwise::xor(a, b);
    /// The bits not set.
    bitwise_not: Bitwise::not(x);
    /// The bits moved up; a count outside of the width gives 0.
    bitwise_left_shift: Shift::left(x, count);
    /// The bits moved down, keeping the sign; a count outside of the width gives 0, or -1 for a negative value.
    bitwise_right_shift: Shift::right(x, count);
}
