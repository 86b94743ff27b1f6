#! surface tilelang
#! param THREADS = 128 {64, 128, 256}
#! let BLOCK = max(pow2(cols), THREADS)
#! launch softmax args(x, output, N=cols, BLOCK=BLOCK)
import tilelang
import tilelang.language as T


def softmax(N, BLOCK, THREADS):
    rows = T.dynamic("rows")

    @T.prim_func
    def main(x: T.Tensor((rows, N), T.bfloat16), y: T.Tensor((rows, N), T.bfloat16)):
        with T.Kernel(rows, threads=THREADS) as row:
            power = T.alloc_fragment((BLOCK,), T.float32)
            largest = T.alloc_fragment((1,), T.float32)
            total = T.alloc_fragment((1,), T.float32)
            for j in T.Parallel(BLOCK):
                power[j] = T.if_then_else(j < N, x[row, j], -T.infinity(T.float32))
            T.reduce_max(power, largest)
            for j in T.Parallel(BLOCK):
                power[j] = T.exp(power[j] - largest[0])
            T.reduce_sum(power, total)
            for j in T.Parallel(BLOCK):
                if j < N:
                    y[row, j] = power[j] / total[0]

    return main
