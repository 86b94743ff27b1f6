// pair.hpp - two implementations of one kernel and the data that both work on.
//
// bench/peers.py compiles each kernel into a shared object with one function,
//     void run(const float *x, const float *y, float *out, const int32_t *axes)
// so that every peer times the same machine code on the same data.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

class pair_of_kernels {
  public:
    // words: A.so B.so ELEMENTS_X ELEMENTS_Y ELEMENTS_OUT AXIS...
    explicit pair_of_kernels(const std::vector<std::string> &words) {
        if (words.size() < 6) throw std::invalid_argument("A.so B.so X Y OUT AXIS...");
        for (int i = 0; i < 2; i++) run_[i] = load(words[i]);
        x_ = drawn(words[2]), y_ = drawn(words[3]);
        out_.resize(std::stoul(words[4]));
        for (size_t i = 5; i < words.size(); i++) axes_.push_back(std::stoi(words[i]));
    }
    void operator()(int which) {
        run_[which](x_.data(), y_.data(), out_.data(), axes_.data());
        asm volatile("" : : "r"(out_.data()) : "memory");
    }

  private:
    using function = void (*)(const float *, const float *, float *, const int32_t *);
    static function load(const std::string &path) {
        void *object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        void *found = object ? dlsym(object, "run") : nullptr;
        if (!found) throw std::runtime_error(dlerror());
        return reinterpret_cast<function>(found);
    }
    static std::vector<float> drawn(const std::string &elements) {
        std::minstd_rand engine(1); // quick: hyperfine times this as well
        std::vector<float> values(std::stoul(elements));
        for (float &v : values) v = (float)engine() * 0x1p-30f - 1;
        return values;
    }
    function run_[2];
    std::vector<float> x_, y_, out_;
    std::vector<int32_t> axes_;
};
