// functions 1, loops 2, depth 2
//! launch f args(x)
#define SPIN(n)                                                                                    \
    do {                                                                                           \
        for (int i = 0; i < n; i++) {                                                              \
        }                                                                                          \
    } while (0)
void f(int *x) {
    SPIN(9);
    x[0] = 1;
}
