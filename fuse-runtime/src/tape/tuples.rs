//! Traits of tuples.

/// Calls a macro with the type parameters of every tuple, each with a second name.
macro_rules! for_tuples {
    ($implement:ident) => {
        $implement! {
            A a;
            A a B b;
            A a B b C c;
            A a B b C c D d;
            A a B b C c D d E e;
            A a B b C c D d E e F f;
            A a B b C c D d E e F f G g;
            A a B b C c D d E e F f G g H h;
            A a B b C c D d E e F f G g H h I i;
            A a B b C c D d E e F f G g H h I i J j;
            A a B b C c D d E e F f G g H h I i J j K k;
            A a B b C c D d E e F f G g H h I i J j K k L l;
            A a B b C c D d E e F f G g H h I i J j K k L l M m;
            A a B b C c D d E e F f G g H h I i J j K k L l M m N n;
            A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o;
            A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p;
        }
    };
}
pub(super) use for_tuples;
