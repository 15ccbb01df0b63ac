//! What every element type can do: comparison, order, choice and logic.

/// A compute type.
pub trait Value: Copy + PartialEq + PartialOrd {
    /// Whether the value counts as true: it is not zero. NaN is true.
    fn truth(self) -> bool;
    /// The smaller of two; NaN wins, -0.0 is below +0.0.
    fn minimum(self, other: Self) -> Self;
    /// The larger of two; NaN wins, -0.0 is below +0.0.
    fn maximum(self, other: Self) -> Self;
}

macro_rules! ordered {
    ($($ty:ty, |$x:ident| $truth:expr;)*) => {$(
        impl Value for $ty {
            #[inline(always)]
            fn truth(self) -> bool {
                let $x = self;
                $truth
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                if other < self { other } else { self }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
        }
    )*};
}

ordered! {
    i64,  |x| x != 0;
    i32,  |x| x != 0;
    u8,   |x| x != 0;
    bool, |x| x;
}

macro_rules! partially_ordered {
    ($($ty:ty)*) => {$(
        impl Value for $ty {
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0.0
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                // Equal numbers have equal bits but for zeros, of which -0.0 has one bit more.
                let equal = <$ty>::from_bits(self.to_bits() | other.to_bits());
                let least = if self < other { self } else { other };
                nan_wins(self, other, if self == other { equal } else { least })
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let equal = <$ty>::from_bits(self.to_bits() & other.to_bits());
                let most = if self > other { self } else { other };
                nan_wins(self, other, if self == other { equal } else { most })
            }
        }
    )*};
}

partially_ordered! { f32 f64 }

/// The first NaN of two values, else `number`.
#[inline(always)]
#[allow(clippy::eq_op)]
fn nan_wins<T: Copy + PartialEq>(a: T, b: T, number: T) -> T {
    let second = if b != b { b } else { number };
    if a != a { a } else { second }
}

/// The smaller of two; NaN wins, -0.0 is below +0.0.
#[inline(always)]
pub fn minimum<T: Value>(a: T, b: T) -> T {
    a.minimum(b)
}

/// The larger of two; NaN wins, -0.0 is below +0.0.
#[inline(always)]
pub fn maximum<T: Value>(a: T, b: T) -> T {
    a.maximum(b)
}

/// `x` held between two bounds; NaN in any of the three wins, and `high` wins over `low`.
#[inline(always)]
pub fn clamp<T: Value>(x: T, low: T, high: T) -> T {
    x.maximum(low).minimum(high)
}

/// `a == b`.
#[inline(always)]
pub fn eq<T: Value>(a: T, b: T) -> bool {
    a == b
}

/// `a != b`; true if either is NaN.
#[inline(always)]
pub fn ne<T: Value>(a: T, b: T) -> bool {
    a != b
}

/// `a < b`.
#[inline(always)]
pub fn lt<T: Value>(a: T, b: T) -> bool {
    a < b
}

/// `a <= b`.
#[inline(always)]
pub fn le<T: Value>(a: T, b: T) -> bool {
    a <= b
}

/// `a > b`.
#[inline(always)]
pub fn gt<T: Value>(a: T, b: T) -> bool {
    a > b
}

/// `a >= b`.
#[inline(always)]
pub fn ge<T: Value>(a: T, b: T) -> bool {
    a >= b
}

/// Whether both count as true.
#[inline(always)]
pub fn logical_and<T: Value>(a: T, b: T) -> bool {
    a.truth() & b.truth()
}

/// Whether at least one counts as true.
#[inline(always)]
pub fn logical_or<T: Value>(a: T, b: T) -> bool {
    a.truth() | b.truth()
}

/// Whether the value counts as false.
#[inline(always)]
pub fn logical_not<T: Value>(a: T) -> bool {
    !a.truth()
}

/// `a` where the condition holds, else `b`.
#[inline(always)]
pub fn where_cond<T: Value>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}
