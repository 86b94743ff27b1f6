// functions 4, loops 5, depth 2
//! launch f args(x)
static int g(int *x) {
    while (*x) x++;
    return *x;
}
static int h(int *x) {
    do x++;
    while (g(x));
    return *x;
}
static int i(int *x) {
    for (; g(x);) x++;
    while (g(x)) x--;
    return *x;
}
void f(int *x) {
    if (g(x) && h(x)) x[0] = 1;
    switch (i(x)) default:
        for (;;) x++;
}
