// The axis a gather or scatter moves along.
struct fuse_axis { long long extent, stride; };
