// functions 1, loops 3, depth 2
//! launch f args(x)
void f(int *x) {
    switch (*x) {
    case 0:
        for (;;) {
        case 1:
            while (*x) x++;
        }
    default:
    again:
        do x--;
        while (*x);
        if (*x) goto again;
    }
}
