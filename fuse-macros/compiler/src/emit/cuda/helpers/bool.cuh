// A condition that a lambda knows when it is compiled.
template <bool VALUE> struct fuse_bool { static constexpr bool value = VALUE; };
