// functions 1, loops 1, depth 1
//! launch f args(x)
void f(int *x) {
    int n = ({
        int m = 0;
        for (int i = 0; i < 3; i++) m += i;
        m;
    });
    x[0] = n;
}
