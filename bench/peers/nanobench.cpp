// nanobench.cpp - nanobench's paired comparison of two kernels, as one JSON object.
//
//   nanobench ROUNDS A.so B.so ELEMENTS... AXIS...        SPDX-License-Identifier: Apache-2.0
#define ANKERL_NANOBENCH_IMPLEMENT
#include <nanobench.h>

#include "pair.hpp"

#include <chrono>
#include <cstdio>

int main(int argc, char **argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    pair_of_kernels kernels({words.begin() + 1, words.end()});
    const auto start = std::chrono::steady_clock::now();
    const auto found = ankerl::nanobench::Bench()
                           .output(nullptr)
                           .epochs(std::stoul(words[0]))
                           .compare("A", [&] { kernels(0); }, "B", [&] { kernels(1); });
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    printf("{\"ratio\": %.9g, \"low\": %.9g, \"high\": %.9g, \"samples\": %zu, \"seconds\": %.9g}\n",
           found[1].relative, found[1].relativeLow, found[1].relativeHigh, found.rounds(), taken.count());
}
