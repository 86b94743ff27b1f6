/* curl_api.h - libcurl, loaded when it is first needed.
 *
 * Only its header is used at build time, for the numbers of options; without the header
 * KL_HAVE_CURL is 0 and the network providers say so.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_MODEL_CURL_API_H
#define KL_MODEL_CURL_API_H
#include <klineage/base.h>

#if KL_HAVE_CURL
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* X(result, name, parameters): the symbol is curl_NAME. */
#define KLI_CURL_FUNCTIONS(X)                                                                      \
    X(CURLcode, global_init, (long))                                                               \
    X(CURL *, easy_init, (void))                                                                   \
    X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                                            \
    X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                                             \
    X(CURLcode, easy_perform, (CURL *))                                                            \
    X(void, easy_cleanup, (CURL *))                                                                \
    X(const char *, easy_strerror, (CURLcode))                                                     \
    X(struct curl_slist *, slist_append, (struct curl_slist *, const char *))                      \
    X(void, slist_free_all, (struct curl_slist *))

typedef struct {
#define KLI_CURL_SLOT(result, name, parameters) result(*name) parameters;
    KLI_CURL_FUNCTIONS(KLI_CURL_SLOT)
#undef KLI_CURL_SLOT
} kli_curl;
#else
typedef struct {
    int none;
} kli_curl;
#endif

/* Loads and initialises it once in a process; $KLINEAGE_LIBCURL, else the system's.  Errors:
 * KL_ENODEV. */
KL_MUST_USE kl_err kli_curl_load(const kli_curl **out, kl_error *e);

#endif
