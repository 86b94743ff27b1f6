// google.cpp - Google Benchmark on two kernels; its own flags first, then
//
//   google [--benchmark_...] A.so B.so ELEMENTS... AXIS...        SPDX-License-Identifier: Apache-2.0
#include "pair.hpp"

#include <benchmark/benchmark.h>

int main(int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    pair_of_kernels kernels(std::vector<std::string>(argv + 1, argv + argc));
    for (int which = 0; which < 2; which++)
        benchmark::RegisterBenchmark(which ? "B" : "A", [&kernels, which](benchmark::State &state) {
            for (auto _ : state) kernels(which);
        });
    benchmark::RunSpecifiedBenchmarks();
}
