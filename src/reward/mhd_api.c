/* mhd_api.c - load libmicrohttpd.
 *
 * dlopen instead of linking, as libcurl is: the build needs none, the program starts where there is
 * none.  Not here: how it is used (httpd.c).  SPDX-License-Identifier: Apache-2.0 */
#include "mhd_api.h"

#if KL_HAVE_MHD
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

kl_err kli_mhd_load(const kli_mhd **out, kl_error *e) {
    static kli_mhd api; /* of this process, like the library itself */
    const char *named = getenv("KLINEAGE_LIBMICROHTTPD");
    void *library = dlopen(named && *named ? named : "libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    *out = &api;
    if (!library) {
        const char *why = dlerror();
        kl_fail(e, KL_ENODEV, "libmicrohttpd",
                "libmicrohttpd is missing, and serve --reward needs it: %s", why ? why : "unknown");
        return kl_hint(e, "on Debian: apt install libmicrohttpd12");
    }
    void *symbol;
#define TAKE(result, name, parameters)                                                             \
    symbol = dlsym(library, "MHD_" #name);                                                         \
    if (!symbol)                                                                                   \
        return kl_fail(e, KL_ENODEV, "libmicrohttpd", "this libmicrohttpd lacks MHD_%s", #name);   \
    memcpy(&api.name, &symbol, sizeof symbol);
    KLI_MHD_FUNCTIONS(TAKE)
#undef TAKE
    return KL_OK;
}

#else

kl_err kli_mhd_load(const kli_mhd **out, kl_error *e) {
    *out = NULL;
    kl_fail(e, KL_ENODEV, "libmicrohttpd",
            "this klineage was built without libmicrohttpd, so serve --reward is not available");
    return kl_hint(e, "apt install libmicrohttpd-dev and build again");
}

#endif
