/* SPDX-License-Identifier: MIT */
/*
 * Prototypes of common functions of the C library, which has no debug information as a rule: name,
 * what it returns, its arguments. A value is `name/format`: d a signed number, u one without sign
 * (shown as an address is, in hexadecimal), p an address, F a function's, s a text, c a character,
 * f a floating-point number; behind it its bits, 64 where nothing is said.
 */
#include "attach/object/signatures.h"

#include <stdlib.h>
#include <string.h>

struct prototype {
	const char *name;
	const char *text; /* "RESULT name/format …"; v: no result */
};

/* Sorted by name. */
static const struct prototype prototypes[] = {
	{ "abort", "v" },
	{ "accept", "d32 fd/d32 addr/p addrlen/p" },
	{ "accept4", "d32 fd/d32 addr/p addrlen/p flags/u32" },
	{ "access", "d32 path/s mode/d32" },
	{ "atoi", "d32 nptr/s" },
	{ "atol", "d nptr/s" },
	{ "bind", "d32 fd/d32 addr/p addrlen/u32" },
	{ "bsearch", "p key/p base/p nmemb/u size/u compar/F" },
	{ "calloc", "p nmemb/u size/u" },
	{ "chdir", "d32 path/s" },
	{ "chmod", "d32 path/s mode/u32" },
	{ "chown", "d32 path/s owner/u32 group/u32" },
	{ "close", "d32 fd/d32" },
	{ "closedir", "d32 dirp/p" },
	{ "connect", "d32 fd/d32 addr/p addrlen/u32" },
	{ "dlclose", "d32 handle/p" },
	{ "dlopen", "p filename/s flags/u32" },
	{ "dlsym", "p handle/p symbol/s" },
	{ "dup", "d32 oldfd/d32" },
	{ "dup2", "d32 oldfd/d32 newfd/d32" },
	{ "epoll_ctl", "d32 epfd/d32 op/d32 fd/d32 event/p" },
	{ "epoll_wait", "d32 epfd/d32 events/p maxevents/d32 timeout/d32" },
	{ "execve", "d32 pathname/s argv/p envp/p" },
	{ "exit", "v status/d32" },
	{ "fclose", "d32 stream/p" },
	{ "fcntl", "d32 fd/d32 cmd/d32 arg/p" },
	{ "fdopen", "p fd/d32 mode/s" },
	{ "fflush", "d32 stream/p" },
	{ "fgets", "s s/p size/d32 stream/p" },
	{ "fopen", "p pathname/s mode/s" },
	{ "fork", "d32" },
	{ "fprintf", "d32 stream/p format/s" },
	{ "fputc", "d32 c/c32 stream/p" },
	{ "fputs", "d32 s/s stream/p" },
	{ "fread", "u ptr/p size/u nmemb/u stream/p" },
	{ "free", "v ptr/p" },
	{ "fseek", "d32 stream/p offset/d whence/d32" },
	{ "fstat", "d32 fd/d32 statbuf/p" },
	{ "fsync", "d32 fd/d32" },
	{ "ftell", "d stream/p" },
	{ "fwrite", "u ptr/p size/u nmemb/u stream/p" },
	{ "getc", "d32 stream/p" },
	{ "getenv", "s name/s" },
	{ "geteuid", "u32" },
	{ "getpid", "d32" },
	{ "getppid", "d32" },
	{ "getuid", "u32" },
	{ "ioctl", "d32 fd/d32 request/u argp/p" },
	{ "isatty", "d32 fd/d32" },
	{ "kill", "d32 pid/d32 sig/d32" },
	{ "listen", "d32 fd/d32 backlog/d32" },
	{ "lseek", "d fd/d32 offset/d whence/d32" },
	{ "lstat", "d32 pathname/s statbuf/p" },
	{ "malloc", "p size/u" },
	{ "memchr", "p s/p c/d32 n/u" },
	{ "memcmp", "d32 s1/p s2/p n/u" },
	{ "memcpy", "p dest/p src/p n/u" },
	{ "memmove", "p dest/p src/p n/u" },
	{ "memset", "p s/p c/d32 n/u" },
	{ "mkdir", "d32 pathname/s mode/u32" },
	{ "mmap", "p addr/p length/u prot/u32 flags/u32 fd/d32 offset/d" },
	{ "mprotect", "d32 addr/p len/u prot/u32" },
	{ "munmap", "d32 addr/p length/u" },
	{ "nanosleep", "d32 req/p rem/p" },
	{ "open", "d32 pathname/s flags/u32 mode/u32" },
	{ "open64", "d32 pathname/s flags/u32 mode/u32" },
	{ "openat", "d32 dirfd/d32 pathname/s flags/u32 mode/u32" },
	{ "opendir", "p name/s" },
	{ "pclose", "d32 stream/p" },
	{ "perror", "v s/s" },
	{ "pipe", "d32 pipefd/p" },
	{ "poll", "d32 fds/p nfds/u timeout/d32" },
	{ "popen", "p command/s type/s" },
	{ "pow", "f x/f y/f" },
	{ "pread", "d fd/d32 buf/p count/u offset/d" },
	{ "pread64", "d fd/d32 buf/p count/u offset/d" },
	{ "printf", "d32 format/s" },
	{ "pthread_cond_signal", "d32 cond/p" },
	{ "pthread_cond_wait", "d32 cond/p mutex/p" },
	{ "pthread_create", "d32 thread/p attr/p start_routine/F arg/p" },
	{ "pthread_join", "d32 thread/u retval/p" },
	{ "pthread_mutex_lock", "d32 mutex/p" },
	{ "pthread_mutex_unlock", "d32 mutex/p" },
	{ "putchar", "d32 c/c32" },
	{ "puts", "d32 s/s" },
	{ "pwrite", "d fd/d32 buf/p count/u offset/d" },
	{ "pwrite64", "d fd/d32 buf/p count/u offset/d" },
	{ "qsort", "v base/p nmemb/u size/u compar/F" },
	{ "read", "d fd/d32 buf/p count/u" },
	{ "readdir", "p dirp/p" },
	{ "readlink", "d pathname/s buf/p bufsiz/u" },
	{ "realloc", "p ptr/p size/u" },
	{ "realpath", "s path/s resolved_path/p" },
	{ "recv", "d sockfd/d32 buf/p len/u flags/u32" },
	{ "recvfrom", "d sockfd/d32 buf/p len/u flags/u32 src_addr/p addrlen/p" },
	{ "remove", "d32 pathname/s" },
	{ "rename", "d32 oldpath/s newpath/s" },
	{ "rmdir", "d32 pathname/s" },
	{ "select", "d32 nfds/d32 readfds/p writefds/p exceptfds/p timeout/p" },
	{ "send", "d sockfd/d32 buf/p len/u flags/u32" },
	{ "sendto", "d sockfd/d32 buf/p len/u flags/u32 dest_addr/p addrlen/u32" },
	{ "setenv", "d32 name/s value/s overwrite/d32" },
	{ "setlocale", "s category/d32 locale/s" },
	{ "setsockopt", "d32 sockfd/d32 level/d32 optname/d32 optval/p optlen/u32" },
	{ "shutdown", "d32 sockfd/d32 how/d32" },
	{ "sigaction", "d32 signum/d32 act/p oldact/p" },
	{ "signal", "F signum/d32 handler/F" },
	{ "sleep", "u32 seconds/u32" },
	{ "snprintf", "d32 str/p size/u format/s" },
	{ "socket", "d32 domain/d32 type/d32 protocol/d32" },
	{ "sprintf", "d32 str/p format/s" },
	{ "sqrt", "f x/f" },
	{ "stat", "d32 pathname/s statbuf/p" },
	{ "strcasecmp", "d32 s1/s s2/s" },
	{ "strcat", "s dest/s src/s" },
	{ "strchr", "s s/s c/c32" },
	{ "strcmp", "d32 s1/s s2/s" },
	{ "strcpy", "s dest/p src/s" },
	{ "strdup", "s s/s" },
	{ "strerror", "s errnum/d32" },
	{ "strlen", "u s/s" },
	{ "strncmp", "d32 s1/s s2/s n/u" },
	{ "strncpy", "s dest/p src/s n/u" },
	{ "strndup", "s s/s n/u" },
	{ "strrchr", "s s/s c/c32" },
	{ "strstr", "s haystack/s needle/s" },
	{ "strtok", "s str/s delim/s" },
	{ "strtol", "d nptr/s endptr/p base/d32" },
	{ "strtoul", "u nptr/s endptr/p base/d32" },
	{ "symlink", "d32 target/s linkpath/s" },
	{ "system", "d32 command/s" },
	{ "time", "d tloc/p" },
	{ "truncate", "d32 path/s length/d" },
	{ "unlink", "d32 pathname/s" },
	{ "unsetenv", "d32 name/s" },
	{ "usleep", "d32 usec/u32" },
	{ "waitpid", "d32 pid/d32 wstatus/p options/d32" },
	{ "write", "d fd/d32 buf/p count/u" },
};

static int by_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct prototype *)element)->name);
}

/* "d32" and the like; *at is moved behind it. False: no memory. */
static bool fill(struct gt_signature_value *value, const char *format, const char *name,
		 size_t name_bytes, struct gt_signature_cursor *cursor)
{
	static const char *const types[][2] = { { "d", "long" },	 { "u", "unsigned long" },
						{ "p", "void *" },	 { "F", "function *" },
						{ "s", "const char *" }, { "c", "char" },
						{ "f", "double" } };
	const uint32_t bits =
		format[1] >= '0' && format[1] <= '9' ? (uint32_t)atoi(format + 1) : 64;
	const char *type = "long";

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i][0][0] == *format)
			type = types[i][1];
	if (bits == 32 && *format == 'd')
		type = "int";
	if (bits == 32 && *format == 'u')
		type = "unsigned int";
	value->is_float = *format == 'f';
	value->place = gt_signature_pass(cursor, bits / 8, value->is_float);
	value->place.is_signed = *format == 'd';
	value->place.take = *format == 's' ? GRAFTRACE_TAKE_STRING : GRAFTRACE_TAKE_NUMBER;
	value->kind = *format == 'p'   ? GRAFTRACE_VALUE_ADDRESS
		      : *format == 'F' ? GRAFTRACE_VALUE_FUNCTION
		      : *format == 'c' ? GRAFTRACE_VALUE_CHARACTER
				       : GRAFTRACE_VALUE_PLAIN;
	if (*format == 'c')
		value->place.bytes = 1;
	value->type = strdup(type);
	value->name = strndup(name, name_bytes);
	return value->type != NULL && value->name != NULL;
}

static uint32_t count_blanks(const char *text)
{
	uint32_t count = 0;

	for (; *text; text++)
		count += *text == ' ';
	return count;
}

struct gt_signature *gt_signature_of_prototype(const char *name)
{
	const struct prototype *found =
		bsearch(name, prototypes, sizeof(prototypes) / sizeof(prototypes[0]),
			sizeof(prototypes[0]), by_name);
	struct gt_signature_cursor cursor = { 0 }, returned = { 0 };
	struct gt_signature *signature;
	bool filled = true;
	const char *at;
	uint32_t i;

	if (found == NULL)
		return NULL;
	signature = gt_signature_new(count_blanks(found->text), *found->text != 'v');
	if (signature == NULL)
		return NULL;
	at = found->text;
	for (i = 0; filled && i < signature->argument_count; i++) {
		const char *word = strchr(at, ' ') + 1;
		const char *format = strchr(word, '/') + 1;

		filled = fill(&signature->values[i], format, word, (size_t)(format - 1 - word),
			      &cursor);
		at = word;
	}
	if (filled && signature->result_count) {
		struct gt_signature_value *result = &signature->values[i];

		filled = fill(result, found->text, "", 0, &returned);
		if (result->place.place == GRAFTRACE_PLACE_REGISTER)
			result->place.base = 0; /* rax */
	}
	if (filled)
		return signature;
	gt_signature_free(signature);
	return NULL;
}
