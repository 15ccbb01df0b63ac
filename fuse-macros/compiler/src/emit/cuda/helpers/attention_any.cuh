#if defined(HEAD_KEYS)
// Attention of a type that is known only where the text is compiled.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any : fuse_attention<T, TO, D, DV, GROUPS, TN, CHOICES...> {};
template <class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any<float, TO, D, DV, GROUPS, TN, CHOICES...> : fuse_attention_floats<float, TO, D, DV, GROUPS, TN, CHOICES...> {};
#endif
