/* pq_api.c - load libpq.
 *
 * dlopen instead of linking: who keeps a journal in a file needs no library for it, and build/bin
 * can be carried.  Not here: how it is used (postgresql.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/pq_api.h"

#if KL_HAVE_PQ
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    bool loaded;
    kli_pq api;
} pq = {.lock = PTHREAD_MUTEX_INITIALIZER};

static kl_err pq_load(kli_pq *api, kl_error *e) {
    const char *named = getenv("KLINEAGE_LIBPQ");
    void *library = dlopen(named && *named ? named : "libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        kl_fail(e, KL_ENODEV, "libpq", "libpq is missing, and a journal in PostgreSQL needs it: %s",
                why ? why : "unknown");
        return kl_hint(e, "on Debian: apt install libpq5; or keep the journal in a file: "
                          "--store PATH");
    }
    void *symbol;
#define TAKE(result, name, parameters)                                                             \
    symbol = dlsym(library, "PQ" #name);                                                           \
    if (!symbol) return kl_fail(e, KL_ENODEV, "libpq", "this libpq lacks PQ%s", #name);            \
    memcpy(&api->name, &symbol, sizeof symbol);
    KLI_PQ_FUNCTIONS(TAKE)
#undef TAKE
    return KL_OK;
}

kl_err kli_pq_load(const kli_pq **out, kl_error *e) {
    *out = &pq.api;
    pthread_mutex_lock(&pq.lock);
    const kl_err err = pq.loaded ? KL_OK : pq_load(&pq.api, e);
    pq.loaded = !err;
    pthread_mutex_unlock(&pq.lock);
    return err;
}

#else

kl_err kli_pq_load(const kli_pq **out, kl_error *e) {
    *out = NULL;
    kl_fail(e, KL_ENODEV, "libpq",
            "this klineage was built without libpq, so a journal in PostgreSQL cannot be opened");
    return kl_hint(e, "apt install libpq-dev and build again; or keep the journal in a file: "
                      "--store PATH");
}

#endif
