#if defined(HEAD_KEYS)
// Attention, and its way back, of a type that is known only where the text is compiled.
template <class T, class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any : fuse_attention<T, TO, D, DV, GROUPS, TN, CHOICES...> {};
template <class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any<float, TO, D, DV, GROUPS, TN, CHOICES...> : fuse_attention_floats<float, TO, D, DV, GROUPS, TN, CHOICES...> {};

template <class T, class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any_dq : fuse_attention_dq<T, TO, D, DV, GROUPS, TN, CHOICES...> {};
template <class TO, int D, int DV, int GROUPS, int TN, bool... CHOICES>
struct fuse_attention_any_dq<float, TO, D, DV, GROUPS, TN, CHOICES...> : fuse_attention_floats_dq<float, TO, D, DV, GROUPS, TN, CHOICES...> {};

template <class T, class TO, int D, int DV, int GROUPS, int TM, bool... CHOICES>
struct fuse_attention_any_dkv : fuse_attention_dkv<T, TO, D, DV, GROUPS, TM, CHOICES...> {};
template <class TO, int D, int DV, int GROUPS, int TM, bool... CHOICES>
struct fuse_attention_any_dkv<float, TO, D, DV, GROUPS, TM, CHOICES...> : fuse_attention_floats_dkv<float, TO, D, DV, GROUPS, TM, CHOICES...> {};
#endif
