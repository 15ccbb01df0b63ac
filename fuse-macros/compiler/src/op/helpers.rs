//! Functions the CUDA text of op rows calls. Only those a kernel uses are written into its source.
//!
//! Texts need no headers and hold for compute capability 7.5 and up. Every function is overloaded for the compute types
//! its op accepts: float, double, int, long long, unsigned char, bool. Their Rust twins are in the runtime's `math`.

/// One function of the table, with all its overloads.
pub struct Helper {
    /// The function's name.
    pub name: &'static str,
    /// Its CUDA C++ text.
    pub text: &'static str,
}

/// The helpers that this text names and those they need, each after what it needs.
pub fn needed_by(text: &str) -> Vec<&'static Helper> {
    let mut found = vec![];
    collect(text, &mut found);
    found
}

fn collect(text: &str, found: &mut Vec<&'static Helper>) {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for helper in words.filter(|word| word.starts_with("fuse_")).filter_map(find) {
        if found.iter().all(|known| known.name != helper.name) {
            // A helper's own overloads name it: mark it as found first, then move it behind what it needs.
            found.push(helper);
            let at = found.len() - 1;
            collect(helper.text, found);
            found[at..].rotate_left(1);
        }
    }
}

/// The helper of this name.
pub fn find(name: &str) -> Option<&'static Helper> {
    HELPERS.iter().find(|helper| helper.name == name)
}

/// A function of float and of double, by expressions over `x` (and `y`).
macro_rules! floats {
    ($name:literal, $float:literal, $double:literal) => {
        Helper {
            name: $name,
            text: concat!(
                "__device__ __forceinline__ float ",
                $name,
                "(float x) { return ",
                $float,
                "; }\n",
                "__device__ __forceinline__ double ",
                $name,
                "(double x) { return ",
                $double,
                "; }\n",
            ),
        }
    };
    ($name:literal, two, $float:literal, $double:literal) => {
        Helper {
            name: $name,
            text: concat!(
                "__device__ __forceinline__ float ",
                $name,
                "(float x, float y) { return ",
                $float,
                "; }\n",
                "__device__ __forceinline__ double ",
                $name,
                "(double x, double y) { return ",
                $double,
                "; }\n",
            ),
        }
    };
}

/// A function of two integers, by one expression for all widths; arithmetic is done without sign, where overflow wraps.
macro_rules! wrapping {
    ($name:literal, $operator:literal) => {
        Helper {
            name: $name,
            text: concat!(
                "__device__ __forceinline__ int ",
                $name,
                "(int x, int y) { return (int)((unsigned)x ",
                $operator,
                " (unsigned)y); }\n",
                "__device__ __forceinline__ long long ",
                $name,
                "(long long x, long long y) { return (long long)((unsigned long long)x ",
                $operator,
                " (unsigned long long)y); }\n",
                "__device__ __forceinline__ unsigned char ",
                $name,
                "(unsigned char x, unsigned char y) { return (unsigned char)(x ",
                $operator,
                " y); }\n",
            ),
        }
    };
}

const HELPERS: &[Helper] = &[
    wrapping!("fuse_add", "+"),
    wrapping!("fuse_sub", "-"),
    wrapping!("fuse_mul", "*"),
    Helper {
        name: "fuse_neg",
        text: "\
__device__ __forceinline__ int fuse_neg(int x) { return (int)(0u - (unsigned)x); }
__device__ __forceinline__ long long fuse_neg(long long x) { return (long long)(0ull - (unsigned long long)x); }
__device__ __forceinline__ unsigned char fuse_neg(unsigned char x) { return (unsigned char)(0 - x); }
",
    },
    Helper {
        name: "fuse_abs",
        text: "\
__device__ __forceinline__ float fuse_abs(float x) { return fabsf(x); }
__device__ __forceinline__ double fuse_abs(double x) { return fabs(x); }
__device__ __forceinline__ int fuse_abs(int x) { return x < 0 ? fuse_neg(x) : x; }
__device__ __forceinline__ long long fuse_abs(long long x) { return x < 0 ? fuse_neg(x) : x; }
__device__ __forceinline__ unsigned char fuse_abs(unsigned char x) { return x; }
",
    },
    // By -1 through negation, because the most negative integer has no quotient; by 0 gives 0, the caller records the fault.
    Helper {
        name: "fuse_div",
        text: "\
__device__ __forceinline__ int fuse_div(int x, int y) { return y == 0 ? 0 : y == -1 ? fuse_neg(x) : x / y; }
__device__ __forceinline__ long long fuse_div(long long x, long long y) { return y == 0 ? 0 : y == -1 ? fuse_neg(x) : x / y; }
__device__ __forceinline__ unsigned char fuse_div(unsigned char x, unsigned char y) { return y == 0 ? 0 : x / y; }
",
    },
    Helper {
        name: "fuse_fmod",
        text: "\
__device__ __forceinline__ float fuse_fmod(float x, float y) { return fmodf(x, y); }
__device__ __forceinline__ double fuse_fmod(double x, double y) { return fmod(x, y); }
__device__ __forceinline__ int fuse_fmod(int x, int y) { return y == 0 || y == -1 ? 0 : x % y; }
__device__ __forceinline__ long long fuse_fmod(long long x, long long y) { return y == 0 || y == -1 ? 0 : x % y; }
__device__ __forceinline__ unsigned char fuse_fmod(unsigned char x, unsigned char y) { return y == 0 ? 0 : x % y; }
",
    },
    // The rounded quotient may lie above the true one (1 / 0.1 floors to 9), so it goes through the exact remainder.
    Helper {
        name: "fuse_floor_divide",
        text: "\
template <class F> __device__ __forceinline__ F fuse_floor_divide_float(F x, F y, F ratio) {
    if (y == 0) return ratio;
    F rest = fuse_fmod(x, y);
    F quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return copysign((F)0, ratio);
    F whole = floor(quotient);
    return quotient - whole > (F)0.5 ? whole + 1 : whole;
}
__device__ __forceinline__ float fuse_floor_divide(float x, float y) { return fuse_floor_divide_float(x, y, x / y); }
__device__ __forceinline__ double fuse_floor_divide(double x, double y) { return fuse_floor_divide_float(x, y, x / y); }
__device__ __forceinline__ int fuse_floor_divide(int x, int y) { return fuse_div(x, y) - (fuse_fmod(x, y) != 0 && (x < 0) != (y < 0)); }
__device__ __forceinline__ long long fuse_floor_divide(long long x, long long y) { return fuse_div(x, y) - (fuse_fmod(x, y) != 0 && (x < 0) != (y < 0)); }
__device__ __forceinline__ unsigned char fuse_floor_divide(unsigned char x, unsigned char y) { return fuse_div(x, y); }
",
    },
    Helper {
        name: "fuse_remainder",
        text: "\
template <class N> __device__ __forceinline__ N fuse_remainder_signed(N x, N y) {
    N rest = fuse_fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
__device__ __forceinline__ float fuse_remainder(float x, float y) { return fuse_remainder_signed(x, y); }
__device__ __forceinline__ double fuse_remainder(double x, double y) { return fuse_remainder_signed(x, y); }
__device__ __forceinline__ int fuse_remainder(int x, int y) { return fuse_remainder_signed(x, y); }
__device__ __forceinline__ long long fuse_remainder(long long x, long long y) { return fuse_remainder_signed(x, y); }
__device__ __forceinline__ unsigned char fuse_remainder(unsigned char x, unsigned char y) { return fuse_fmod(x, y); }
",
    },
    // NaN wins; of two zeros the one with the sign is the smaller.
    Helper {
        name: "fuse_minimum",
        text: "\
__device__ __forceinline__ float fuse_minimum(float x, float y) { return x != x ? x : y != y ? y : x == y ? (__float_as_int(x) < 0 ? x : y) : x < y ? x : y; }
__device__ __forceinline__ double fuse_minimum(double x, double y) { return x != x ? x : y != y ? y : x == y ? (__double_as_longlong(x) < 0 ? x : y) : x < y ? x : y; }
__device__ __forceinline__ int fuse_minimum(int x, int y) { return x < y ? x : y; }
__device__ __forceinline__ long long fuse_minimum(long long x, long long y) { return x < y ? x : y; }
__device__ __forceinline__ unsigned char fuse_minimum(unsigned char x, unsigned char y) { return x < y ? x : y; }
__device__ __forceinline__ bool fuse_minimum(bool x, bool y) { return x && y; }
",
    },
    Helper {
        name: "fuse_maximum",
        text: "\
__device__ __forceinline__ float fuse_maximum(float x, float y) { return x != x ? x : y != y ? y : x == y ? (__float_as_int(x) < 0 ? y : x) : x > y ? x : y; }
__device__ __forceinline__ double fuse_maximum(double x, double y) { return x != x ? x : y != y ? y : x == y ? (__double_as_longlong(x) < 0 ? y : x) : x > y ? x : y; }
__device__ __forceinline__ int fuse_maximum(int x, int y) { return x > y ? x : y; }
__device__ __forceinline__ long long fuse_maximum(long long x, long long y) { return x > y ? x : y; }
__device__ __forceinline__ unsigned char fuse_maximum(unsigned char x, unsigned char y) { return x > y ? x : y; }
__device__ __forceinline__ bool fuse_maximum(bool x, bool y) { return x || y; }
",
    },
    // By squaring, from the lowest bit of the exponent up; the Rust twin multiplies in the same order.
    Helper {
        name: "fuse_powi",
        text: "\
template <class F> __device__ __forceinline__ F fuse_powi_float(F x, int n) {
    F result = 1;
    for (unsigned left = n < 0 ? 0u - (unsigned)n : (unsigned)n; left != 0; left >>= 1) {
        if (left & 1) result *= x;
        x *= x;
    }
    return n < 0 ? 1 / result : result;
}
template <class N> __device__ __forceinline__ N fuse_powi_int(N x, int n) {
    if (n < 0) return x == 1 ? 1 : x == (N)-1 && (N)-1 < (N)0 ? (n & 1 ? x : (N)1) : (N)0;
    N result = 1;
    for (unsigned left = n; left != 0; left >>= 1) {
        if (left & 1) result = fuse_mul(result, x);
        x = fuse_mul(x, x);
    }
    return result;
}
__device__ __forceinline__ float fuse_powi(float x, int n) { return fuse_powi_float(x, n); }
__device__ __forceinline__ double fuse_powi(double x, int n) { return fuse_powi_float(x, n); }
__device__ __forceinline__ int fuse_powi(int x, int n) { return fuse_powi_int(x, n); }
__device__ __forceinline__ long long fuse_powi(long long x, int n) { return fuse_powi_int(x, n); }
__device__ __forceinline__ unsigned char fuse_powi(unsigned char x, int n) { return fuse_powi_int(x, n); }
",
    },
    floats!("fuse_powf", two, "powf(x, y)", "pow(x, y)"),
    floats!("fuse_exp", "expf(x)", "exp(x)"),
    floats!("fuse_ln", "logf(x)", "log(x)"),
    floats!("fuse_sqrt", "sqrtf(x)", "sqrt(x)"),
    floats!("fuse_sin", "sinf(x)", "sin(x)"),
    floats!("fuse_cos", "cosf(x)", "cos(x)"),
    floats!("fuse_tanh", "tanhf(x)", "tanh(x)"),
    floats!("fuse_erf", "erff(x)", "erf(x)"),
    floats!("fuse_floor", "floorf(x)", "floor(x)"),
    floats!("fuse_ceil", "ceilf(x)", "ceil(x)"),
    floats!("fuse_round", "rintf(x)", "rint(x)"),
    floats!("fuse_sigmoid", "1.0f / (1.0f + expf(-x))", "1.0 / (1.0 + exp(-x))"),
    floats!("fuse_silu", "x / (1.0f + expf(-x))", "x / (1.0 + exp(-x))"),
    Helper {
        name: "fuse_gelu",
        text: "\
// x times the normal distribution at x. For halves the distribution at -|x| is 2 to the power of a polynomial fitted on
// [0, 6]: with a relative error below 2^-18, far below their own rounding, at a third of the instructions.
__device__ __forceinline__ float fuse_gelu_half(float x)
{
    const float t = fabsf(x);
    float power = -1.5559250e-6f;
    power = __fmaf_rn(power, t, 5.6946468e-5f);
    power = __fmaf_rn(power, t, -9.0079196e-4f);
    power = __fmaf_rn(power, t, 8.4161423e-3f);
    power = __fmaf_rn(power, t, -5.3818967e-2f);
    power = __fmaf_rn(power, t, -4.5856428e-1f);
    power = __fmaf_rn(power, t, -1.1512256f);
    power = __fmaf_rn(power, t, -0.99999630f);
    float below;
    asm(\"ex2.approx.f32 %0, %1;\" : \"=f\"(below) : \"f\"(power));
    return x * (x < 0.0f ? below : 1.0f - below);
}
template <class T> __device__ __forceinline__ float fuse_gelu(float x)
{
    return sizeof(T) == 2 ? fuse_gelu_half(x) : 0.5f * x * (1.0f + erff(x * 0.707106781f));
}
template <class T> __device__ __forceinline__ double fuse_gelu(double x)
{
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752));
}
",
    },
    floats!(
        "fuse_gelu_tanh",
        "0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)))",
        "0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)))"
    ),
    Helper {
        name: "fuse_isinf",
        text: "\
__device__ __forceinline__ bool fuse_isinf(float x) { return fabsf(x) == __int_as_float(0x7f800000); }
__device__ __forceinline__ bool fuse_isinf(double x) { return fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }
",
    },
    // A count outside the width shifts everything out.
    Helper {
        name: "fuse_left_shift",
        text: "\
__device__ __forceinline__ int fuse_left_shift(int x, int n) { return (unsigned)n < 32u ? (int)((unsigned)x << n) : 0; }
__device__ __forceinline__ long long fuse_left_shift(long long x, long long n) { return (unsigned long long)n < 64ull ? (long long)((unsigned long long)x << n) : 0; }
__device__ __forceinline__ unsigned char fuse_left_shift(unsigned char x, unsigned char n) { return n < 8 ? (unsigned char)(x << n) : 0; }
",
    },
    Helper {
        name: "fuse_right_shift",
        text: "\
__device__ __forceinline__ int fuse_right_shift(int x, int n) { return x >> ((unsigned)n < 32u ? n : 31); }
__device__ __forceinline__ long long fuse_right_shift(long long x, long long n) { return x >> ((unsigned long long)n < 64ull ? n : 63); }
__device__ __forceinline__ unsigned char fuse_right_shift(unsigned char x, unsigned char n) { return n < 8 ? x >> n : 0; }
",
    },
];
