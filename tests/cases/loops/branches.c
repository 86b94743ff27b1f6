// functions 1, loops 3, depth 1
//! launch f args(x)
void f(int *x) {
    if (x[0])
        for (;;) x++;
    else
        do x--;
        while (*x);
    while (*x) ++x;
}
