/* libcurl, loaded when a server with a url is there: it brings thirty libraries along, and nothing else of lair
 * needs them. */
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define CURL_FUNCTIONS(F)                                                                                          \
	F(global_init)                                                                                             \
	F(easy_init)                                                                                               \
	F(easy_cleanup)                                                                                            \
	F(easy_setopt)                                                                                             \
	F(easy_getinfo)                                                                                            \
	F(easy_strerror)                                                                                           \
	F(slist_append)                                                                                            \
	F(slist_free_all)                                                                                          \
	F(multi_init)                                                                                              \
	F(multi_cleanup)                                                                                           \
	F(multi_setopt)                                                                                            \
	F(multi_add_handle)                                                                                        \
	F(multi_remove_handle)                                                                                     \
	F(multi_socket_action)                                                                                     \
	F(multi_info_read)                                                                                         \
	F(multi_assign)

struct curl {
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
	CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* The functions; NULL if there is no libcurl on this host. They stay loaded. */
const struct curl *curl_loaded(void);
