/* curl_api.c - load libcurl.
 *
 * dlopen instead of linking: the build needs none, the program starts where there is none, and what
 * it loads is the system's own, with the system's certificates. Not here: how it is used (http.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "curl_api.h"

#if KL_HAVE_CURL
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *open_library(void) {
    static const char *const NAMES[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const char *named = getenv("KLINEAGE_LIBCURL");
    if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *library = NULL;
    for (size_t i = 0; !library && i < KL_COUNT(NAMES); i++)
        library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Of this process: a library is loaded once, and whoever comes first sets it up alone. */
static struct {
    pthread_mutex_t lock;
    bool loaded;
    kli_curl api;
} curl = {.lock = PTHREAD_MUTEX_INITIALIZER};

static kl_err curl_load(kli_curl *api, kl_error *e) {
    void *library = open_library();
    if (!library) {
        const char *why = dlerror();
        kl_fail(e, KL_ENODEV, "libcurl", "libcurl is missing, and network models need it: %s",
                why ? why : "unknown");
        return kl_hint(e, "on Debian: apt install libcurl4; without a network: --model mailbox:DIR "
                          "or --model builtin");
    }
    void *symbol;
#define TAKE(result, name, parameters)                                                             \
    symbol = dlsym(library, "curl_" #name);                                                        \
    if (!symbol) return kl_fail(e, KL_ENODEV, "libcurl", "this libcurl lacks curl_%s", #name);     \
    memcpy(&api->name, &symbol, sizeof symbol);
    KLI_CURL_FUNCTIONS(TAKE)
#undef TAKE
    return api->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? KL_OK
               : kl_fail(e, KL_ENODEV, "libcurl", "does not initialise");
}

kl_err kli_curl_load(const kli_curl **out, kl_error *e) {
    *out = &curl.api;
    pthread_mutex_lock(&curl.lock);
    const kl_err err = curl.loaded ? KL_OK : curl_load(&curl.api, e);
    curl.loaded = !err;
    pthread_mutex_unlock(&curl.lock);
    return err;
}

#else

kl_err kli_curl_load(const kli_curl **out, kl_error *e) {
    *out = NULL;
    kl_fail(e, KL_ENODEV, "libcurl",
            "this klineage was built without libcurl, so network models are not available");
    return kl_hint(e, "apt install libcurl4-openssl-dev and build again; or use --model "
                      "command:PROGRAM, mailbox:DIR or builtin");
}

#endif
