/* cuda_api.c - dlopen of the driver and of NVRTC; see cuda_api.h.
 *
 * A library that lacks one function is refused as a whole, naming the function: half a driver would
 * fail later and say less. SPDX-License-Identifier: Apache-2.0 */
#include "cuda_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ISO C has no conversion from object to function pointer; copying the bytes is what POSIX promises
 * to work. */
static bool resolve(void *library, const char *symbol, void *slot) {
    void *address = dlsym(library, symbol);
    memcpy(slot, &address, sizeof address);
    return address != NULL;
}

static bool resolve_driver(kli_cuda_api *api, char *why, size_t why_bytes) {
    const char *missing = NULL;
#define X(field, symbol, parameters)                                                               \
    if (!resolve(api->library, symbol, &api->field)) missing = symbol;
    KL_CUDA_FUNCTIONS(X)
#undef X
    if (missing)
        snprintf(why, why_bytes, "the CUDA driver has no %s; CUDA 12.4 or newer is needed",
                 missing);
    return missing == NULL;
}

const kli_cuda_api *kli_cuda_api_load(char *why, size_t why_bytes) {
    static kli_cuda_api api;
    if (api.library) return &api;
    const char *override = getenv("KLINEAGE_LIBCUDA");
    kli_cuda_api fresh = {.fake = override && *override};
    fresh.library = dlopen(fresh.fake ? override : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!fresh.library) {
        snprintf(why, why_bytes, "no CUDA driver: %s", dlerror());
        return NULL;
    }
    if (!resolve_driver(&fresh, why, why_bytes)) {
        dlclose(fresh.library);
        return NULL;
    }
    kl_cu_result error = fresh.init(0);
    if (error) {
        size_t n = (size_t)snprintf(why, why_bytes, "the CUDA driver does not start: ");
        if (n < why_bytes) kli_cuda_error_text(&fresh, error, why + n, why_bytes - n);
        dlclose(fresh.library);
        return NULL;
    }
    api = fresh;
    return &api;
}

int kli_cuda_attribute(const kli_cuda_api *api, kl_cu_device device, int which) {
    int value = 0;
    return api->device_attribute(&value, which, device) == KL_CU_OK ? value : 0;
}

void kli_cuda_error_text(const kli_cuda_api *api, kl_cu_result error, char *text,
                         size_t text_bytes) {
    const char *name = NULL, *words = NULL;
    if (api->error_name(error, &name) || !name) name = "CUDA_ERROR";
    if (api->error_text(error, &words) || !words) words = "no description";
    snprintf(text, text_bytes, "%s (%d): %s", name, error, words);
}

/* ---- NVRTC ------------------------------------------------------------------------------- */

static void *open_nvrtc(const char *path) {
    const char *override = getenv("KLINEAGE_LIBNVRTC");
    void *library = NULL;
    if (override && *override)
        return strcmp(override, "none") == 0 ? NULL : dlopen(override, RTLD_NOW | RTLD_LOCAL);
    if (path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen("libnvrtc.so.12", RTLD_NOW | RTLD_LOCAL);
}

static bool resolve_nvrtc(kli_nvrtc_api *api, char *why, size_t why_bytes) {
    const char *missing = NULL;
#define X(field, symbol, parameters)                                                               \
    if (!resolve(api->library, symbol, &api->field)) missing = symbol;
    KL_NVRTC_FUNCTIONS(X)
#undef X
    if (missing) snprintf(why, why_bytes, "NVRTC has no %s; CUDA 12.0 or newer is needed", missing);
    return missing == NULL;
}

const kli_nvrtc_api *kli_nvrtc_api_load(const char *path, char *why, size_t why_bytes) {
    static kli_nvrtc_api api;
    if (api.library) return &api;
    kli_nvrtc_api fresh = {.library = open_nvrtc(path)};
    if (!fresh.library) {
        snprintf(why, why_bytes, "no libnvrtc.so.13 or .12");
        return NULL;
    }
    if (!resolve_nvrtc(&fresh, why, why_bytes)) {
        dlclose(fresh.library);
        return NULL;
    }
    api = fresh;
    return &api;
}
