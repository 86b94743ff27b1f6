#! surface tilelang
#! let BLOCK = max(pow2(cols), 128)
#! buffer tops: f32[rows]
#! buffer sums: f32[rows]
#! launch stats args(x, tops, sums, N=cols, BLOCK=BLOCK)
#! launch scale args(x, tops, sums, output, N=cols)
import tilelang.language as T

rows = T.dynamic("rows")


def stats(N, BLOCK):
    @T.prim_func
    def main(x: T.Tensor((rows, N), "bfloat16"), tops: T.Tensor((rows,), "float32"), sums: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=128) as row:
            power = T.alloc_fragment((BLOCK,), T.float32)
            largest = T.alloc_fragment((1,), T.float32)
            total = T.alloc_fragment((1,), T.float32)
            for j in T.Parallel(BLOCK):
                power[j] = T.if_then_else(j < N, x[row, j], -T.infinity(T.float32))
            T.reduce_max(power, largest)
            for j in T.Parallel(BLOCK):
                power[j] = T.exp(power[j] - largest[0])
            T.reduce_sum(power, total)
            tops[row] = largest[0]
            sums[row] = total[0]

    return main


def scale(N):
    @T.prim_func
    def main(x: T.Tensor((rows, N), "bfloat16"), tops: T.Tensor((rows,), "float32"), sums: T.Tensor((rows,), "float32"),
             y: T.Tensor((rows, N), "bfloat16")):
        with T.Kernel(rows, T.ceildiv(N, 256), threads=128) as (row, block):
            for j in T.Parallel(256):
                if block * 256 + j < N:
                    y[row, block * 256 + j] = T.exp(x[row, block * 256 + j] - tops[row]) / sums[row]

    return main
