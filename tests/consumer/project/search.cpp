// search.cpp - every header from C++20, both libraries: gate a kernel, keep the verdict in a journal, read it back.
// SPDX-License-Identifier: Apache-2.0
#include <klineage/klineage.h>
#include <klineage/plugin.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

static void check(kl_err err, const kl_error &e) {
    if (!err) return;
    std::printf("%s: %s\n%s\n", e.where, e.message, e.hint);
    std::exit(1);
}

static void keep_line(void *ctx, kl_log_level, const char *line) { *static_cast<std::string *>(ctx) += line; }

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    kl_error e{};
    std::unique_ptr<kl_arena, decltype(&kl_arena_free)> arena(kl_arena_new(), kl_arena_free);
    kl_str folder, json;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate *gate;
    kl_store *store;
    kl_verdict verdict{};
    char key[65];
    std::string said;
    const kl_monitor monitor{.log = keep_line, .progress = nullptr, .cancelled = nullptr, .ctx = &said};
    kl_gate_opts opts{};
    opts.workload = argv[2];
    opts.check_only = true;
    opts.monitor = &monitor;
    check(kl_task_find(&folder, arena.get(), "gemm", &e), e);
    check(kl_task_load(&task, arena.get(), folder.ptr, &e), e);
    check(kl_kernel_load(&kernel, arena.get(), argv[1], nullptr, &e), e);
    check(kl_gate_open(&gate, &e), e);
    check(kl_gate_run(&verdict, gate, arena.get(), task, kernel, &opts, &e), e);
    check(kl_gate_key(key, gate, arena.get(), task, kernel, &opts, &e), e);
    kl_gate_close(gate);

    std::filesystem::remove("journal.db");
    check(kl_store_open(&store, "journal.db", &e), e);
    json_t *document = kl_verdict_json(&verdict);
    char *text = json_dumps(document, JSON_COMPACT);
    kl_store_verdict row{};
    row.key = kl_str_of(key);
    row.task = kl_task_name(task);
    row.kernel = kl_str_of(kl_kernel_hash(kernel));
    row.platform = verdict.platform;
    row.outcome = kl_str_of(kl_outcome_name(verdict.outcome));
    row.json = kl_str_of(text);
    check(kl_store_verdict_put(store, &row, &e), e);
    check(kl_store_verdict_get(&json, store, arena.get(), key, &e), e);
    const bool same = kl_str_eq(json, row.json) && kl_str_starts(json, KL_S("{"));
    std::free(text);
    json_decref(document);
    kl_store_close(store);
    std::printf("%s, %s a search by policy %s could follow\n", kl_outcome_name(verdict.outcome),
                same ? "kept;" : "lost;", kl_policy_name(kl_policy_each(0)));
    return verdict.outcome == KL_OUTCOME_PASS && same ? 0 : 1;
}
