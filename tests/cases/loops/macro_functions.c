// functions 3, loops 3, depth 2
//! launch f args(x)
#define BODY(name, step)                                                                           \
    static void name(int *x) {                                                                     \
        while (*x) x += step;                                                                      \
    }
BODY(g, 1)
BODY(h, 2)
void f(int *x) {
    for (;;) g(x), h(x);
}
