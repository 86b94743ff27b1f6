// functions 2, loops 2, depth 2
//! launch f args(x)
static void g(int *x, int n) {
    if (n) g(x, n - 1);
    for (;;) x++;
}
void f(int *x) {
    for (;;) g(x, 3);
}
