#if defined(HEAD_KEYS)
FUSE_WGMMAS(fuse_f16, "f16")
#endif
