// loop.cpp - calls one of two kernels CALLS times: the command that hyperfine times.
//
//   loop A|B CALLS A.so B.so ELEMENTS... AXIS...        SPDX-License-Identifier: Apache-2.0
#include "pair.hpp"

int main(int argc, char **argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    pair_of_kernels kernels({words.begin() + 2, words.end()});
    const int which = words[0] == "B";
    for (long left = std::stol(words[1]); left > 0; left--) kernels(which);
}
