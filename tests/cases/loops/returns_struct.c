// functions 2, loops 2, depth 2
//! launch f args(x)
struct s {
    int a;
};
static struct s g(int *x) {
    for (;;) x++;
}
void f(int *x) {
    struct s t[2] = {{1}, {2}};
    for (;;) t[0] = g(x);
}
