#if defined(HEAD_KEYS)
FUSE_WGMMAS(fuse_bf16, "bf16")
#endif
