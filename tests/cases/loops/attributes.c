// functions 2, loops 1, depth 1
//! launch f args(x)
static inline __attribute__((always_inline)) int g(int a) __attribute__((const));
int g(int a) { return a; }
__attribute__((noinline)) void f(int *x) {
    for (;;) x[0] = g(1);
}
