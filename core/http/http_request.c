/* SPDX-License-Identifier: MIT */
/*
 * Parsing of HTTP request heads. Guarantees: reads only the given bytes, each at most a few times;
 * writes only the request; callable from anywhere. Strict on purpose: what is refused here cannot
 * be read in two ways.
 */
#include "core/http/http_request.h"
#include "core/trace/message.h"

/* Where the parser stands in the head. */
struct cursor {
	const char *bytes;
	size_t count;
	size_t at;
	struct gt_message *message;
};

static int refuse(struct cursor *cursor, int error, const char *what)
{
	return gt_fail(cursor->message, error, "%s at byte %llu", what,
		       (unsigned long long)cursor->at);
}

static char lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

/* `word` is in lower case. */
static bool is_word(const char *text, size_t bytes, const char *word)
{
	size_t i = 0;

	while (i < bytes && word[i] != '\0' && lower(text[i]) == word[i])
		i++;
	return i == bytes && word[i] == '\0';
}

static bool is_exactly(const char *text, size_t bytes, const char *word)
{
	size_t i = 0;

	while (i < bytes && word[i] != '\0' && text[i] == word[i])
		i++;
	return i == bytes && word[i] == '\0';
}

/* RFC 9110, 5.6.2 */
static bool is_token(char byte)
{
	const char *others = "!#$%&'*+-.^_`|~";

	if ((byte >= '0' && byte <= '9') || (lower(byte) >= 'a' && lower(byte) <= 'z'))
		return true;
	while (*others != '\0' && *others != byte)
		others++;
	return *others != '\0';
}

static int hex(char byte)
{
	byte = lower(byte);
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Finds the empty line. Returns 0 with *end after it, GT_EAGAIN, or GT_EINVAL for a bad line
 * end. */
static int find_end(struct cursor *cursor, size_t *end)
{
	size_t line = 0;
	size_t most = cursor->count < GT_HTTP_HEAD_BYTES ? cursor->count : GT_HTTP_HEAD_BYTES;

	for (size_t i = 0; i < most; i++) {
		char byte = cursor->bytes[i];

		cursor->at = i;
		if (byte == '\0')
			return refuse(cursor, GT_EINVAL, "a NUL byte");
		if (byte == '\r' && i + 1 < most && cursor->bytes[i + 1] != '\n')
			return refuse(cursor, GT_EINVAL, "a carriage return without line feed");
		if (byte != '\n')
			continue;
		if (i == 0 || cursor->bytes[i - 1] != '\r')
			return refuse(cursor, GT_EINVAL, "a line feed without carriage return");
		if (i - 1 == line) {
			*end = i + 1;
			return 0;
		}
		line = i + 1;
	}
	if (cursor->count >= GT_HTTP_HEAD_BYTES)
		return refuse(cursor, GT_ENOSPC, "the head of the request is too long");
	return GT_EAGAIN;
}

/* Refuses `.` and `..` between slashes in the decoded path. */
static int check_components(struct cursor *cursor, const struct gt_http_request *request)
{
	size_t start = 1;

	for (size_t i = 1; i <= request->path_bytes; i++) {
		size_t bytes;

		if (i < request->path_bytes && request->path[i] != '/')
			continue;
		bytes = i - start;
		if ((bytes == 1 && request->path[start] == '.') ||
		    (bytes == 2 && request->path[start] == '.' && request->path[start + 1] == '.'))
			return refuse(cursor, GT_EINVAL, "a path with . or ..");
		start = i + 1;
	}
	return 0;
}

static int parse_path(struct cursor *cursor, struct gt_http_request *request)
{
	size_t bytes = 0;

	if (cursor->bytes[cursor->at] != '/')
		return refuse(cursor, GT_EINVAL, "a path without leading slash");
	for (; cursor->bytes[cursor->at] != ' ' && cursor->bytes[cursor->at] != '?'; cursor->at++) {
		char byte = cursor->bytes[cursor->at];

		if (byte <= ' ' || byte >= 0x7f || byte == '\\' || byte == '#')
			return refuse(cursor, GT_EINVAL, "a byte that no path has");
		if (byte == '%') {
			int high = hex(cursor->bytes[cursor->at + 1]);
			int low = high < 0 ? -1 : hex(cursor->bytes[cursor->at + 2]);

			if (low < 0 || (high == 0 && low == 0))
				return refuse(cursor, GT_EINVAL, "a wrong % sequence");
			byte = (char)(high << 4 | low);
			if (byte == '\\')
				return refuse(cursor, GT_EINVAL, "a byte that no path has");
			cursor->at += 2;
		}
		if (bytes + 1 >= sizeof(request->path))
			return refuse(cursor, GT_ENOSPC, "the path is too long");
		request->path[bytes++] = byte;
	}
	request->path[bytes] = '\0';
	request->path_bytes = bytes;
	return check_components(cursor, request);
}

/* METHOD SP path [?query] SP HTTP/1.x CRLF. The head ends in CRLF CRLF, so every scan below ends.
 */
static int parse_line(struct cursor *cursor, struct gt_http_request *request)
{
	static const struct {
		const char *name;
		enum gt_http_method method;
	} methods[] = { { "GET", GT_HTTP_GET },
			{ "HEAD", GT_HTTP_HEAD },
			{ "PUT", GT_HTTP_PUT },
			{ "POST", GT_HTTP_POST } };
	const char *bytes = cursor->bytes;
	size_t start = cursor->at;
	int error;

	while (is_token(bytes[cursor->at]))
		cursor->at++;
	if (cursor->at == start || bytes[cursor->at] != ' ')
		return refuse(cursor, GT_EINVAL, "no method");
	request->method = GT_HTTP_OTHER;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (is_exactly(bytes + start, cursor->at - start, methods[i].name))
			request->method = methods[i].method;
	}
	cursor->at++;
	error = parse_path(cursor, request);
	if (error != 0)
		return error;
	if (bytes[cursor->at] == '?') {
		start = ++cursor->at;
		while (bytes[cursor->at] > ' ' && bytes[cursor->at] < 0x7f)
			cursor->at++;
		request->query = (struct gt_http_text){ bytes + start, cursor->at - start };
	}
	if (bytes[cursor->at] != ' ')
		return refuse(cursor, GT_EINVAL, "no version behind the path");
	start = ++cursor->at;
	while (bytes[cursor->at] != '\r')
		cursor->at++;
	if (cursor->at - start != 8 || !is_exactly(bytes + start, 5, "HTTP/"))
		return refuse(cursor, GT_EINVAL, "no version behind the path");
	if (bytes[start + 5] != '1' || bytes[start + 6] != '.' ||
	    (bytes[start + 7] != '0' && bytes[start + 7] != '1'))
		return refuse(cursor, GT_ENOTSUP, "not HTTP/1.0 or HTTP/1.1");
	request->minor = (unsigned)(bytes[start + 7] - '0');
	request->keep_alive = request->minor == 1;
	cursor->at += 2;
	return 0;
}

static int parse_length(struct cursor *cursor, struct gt_http_request *request,
			struct gt_http_text value, bool *seen)
{
	uint64_t length = 0;

	if (*seen)
		return refuse(cursor, GT_EINVAL, "two Content-Length headers");
	*seen = true;
	if (value.bytes == 0 || value.bytes > 18)
		return refuse(cursor, GT_EINVAL, "a wrong Content-Length");
	for (size_t i = 0; i < value.bytes; i++) {
		if (value.text[i] < '0' || value.text[i] > '9')
			return refuse(cursor, GT_EINVAL, "a wrong Content-Length");
		length = length * 10 + (uint64_t)(value.text[i] - '0');
	}
	request->content_length = length;
	return 0;
}

static int keep_once(struct cursor *cursor, struct gt_http_text *kept, struct gt_http_text value)
{
	if (kept->text != NULL)
		return refuse(cursor, GT_EINVAL, "a header that may stand once only");
	*kept = value;
	return 0;
}

static int parse_header(struct cursor *cursor, struct gt_http_request *request, bool *length_seen)
{
	const char *bytes = cursor->bytes;
	size_t start = cursor->at;
	size_t name_bytes;
	const char *name = bytes + start;
	struct gt_http_text value;

	while (is_token(bytes[cursor->at]))
		cursor->at++;
	name_bytes = cursor->at - start;
	if (name_bytes == 0 || bytes[cursor->at] != ':')
		return refuse(cursor, GT_EINVAL, "no header");
	cursor->at++;
	while (bytes[cursor->at] == ' ' || bytes[cursor->at] == '\t')
		cursor->at++;
	start = cursor->at;
	while (bytes[cursor->at] != '\r') {
		if ((unsigned char)bytes[cursor->at] < ' ' && bytes[cursor->at] != '\t')
			return refuse(cursor, GT_EINVAL, "a control byte in a header");
		cursor->at++;
	}
	value = (struct gt_http_text){ bytes + start, cursor->at - start };
	while (value.bytes > 0 &&
	       (value.text[value.bytes - 1] == ' ' || value.text[value.bytes - 1] == '\t'))
		value.bytes--;
	cursor->at += 2;

	if (is_word(name, name_bytes, "host"))
		return keep_once(cursor, &request->host, value);
	if (is_word(name, name_bytes, "origin"))
		return keep_once(cursor, &request->origin, value);
	if (is_word(name, name_bytes, "sec-fetch-site"))
		return keep_once(cursor, &request->fetch_site, value);
	if (is_word(name, name_bytes, "accept"))
		request->accept = value;
	else if (is_word(name, name_bytes, "content-length"))
		return parse_length(cursor, request, value, length_seen);
	else if (is_word(name, name_bytes, "transfer-encoding")) {
		if (!is_word(value.text, value.bytes, "chunked") || request->chunked)
			return refuse(cursor, GT_EINVAL, "a transfer encoding other than chunked");
		request->chunked = true;
	} else if (is_word(name, name_bytes, "connection")) {
		if (is_word(value.text, value.bytes, "close"))
			request->keep_alive = false;
		else if (is_word(value.text, value.bytes, "keep-alive"))
			request->keep_alive = true;
	} else if (is_word(name, name_bytes, "expect")) {
		if (!is_word(value.text, value.bytes, "100-continue"))
			return refuse(cursor, GT_EINVAL, "an unknown expectation");
		request->expects_continue = true;
	}
	return 0;
}

int gt_http_request_parse(struct gt_http_request *request, const char *bytes, size_t count,
			  struct gt_message *message)
{
	struct cursor cursor = { bytes, count, 0, message };
	bool length_seen = false;
	size_t end = 0;
	int error = find_end(&cursor, &end);

	if (error != 0)
		return error;
	request->query = request->host = request->origin = request->accept = request->fetch_site =
		(struct gt_http_text){ NULL, 0 };
	request->expects_continue = false;
	request->chunked = false;
	request->content_length = 0;
	request->head_bytes = end;
	cursor.count = end;
	cursor.at = 0;
	error = parse_line(&cursor, request);
	while (error == 0 && cursor.at < end - 2)
		error = parse_header(&cursor, request, &length_seen);
	if (error == 0 && request->chunked && length_seen)
		error = refuse(&cursor, GT_EINVAL, "both Content-Length and Transfer-Encoding");
	if (error == 0 && request->minor == 1 && request->host.text == NULL)
		error = refuse(&cursor, GT_EINVAL, "no Host header");
	return error;
}

/* 192.168.1.5 or [fe80::1]: digits, not a name. */
static bool is_address(const char *host, size_t bytes)
{
	bool six = bytes > 2 && host[0] == '[' && host[bytes - 1] == ']';
	size_t dots = 0;

	for (size_t i = six; i < bytes - six; i++) {
		if (six ? hex(host[i]) < 0 && host[i] != ':' && host[i] != '.'
			: (host[i] < '0' || host[i] > '9') && host[i] != '.')
			return false;
		dots += host[i] == '.';
	}
	return six || dots == 3;
}

bool gt_http_host_is_allowed(const char *host, size_t bytes, const char *bound, bool any_address)
{
	size_t name = 0;

	if (bound != NULL && is_word(host, bytes, bound))
		return true;
	if (bytes > 0 && host[0] == '[') {
		while (name < bytes && host[name] != ']')
			name++;
		name += name < bytes;
	} else {
		while (name < bytes && host[name] != ':')
			name++;
	}
	if (name < bytes) {
		if (host[name] != ':' || name + 1 == bytes || bytes - name > 6)
			return false;
		for (size_t i = name + 1; i < bytes; i++) {
			if (host[i] < '0' || host[i] > '9')
				return false;
		}
	}
	return is_word(host, name, "localhost") || is_word(host, name, "127.0.0.1") ||
	       is_word(host, name, "[::1]") || (any_address && is_address(host, name));
}

bool gt_http_origin_is_own(const char *origin, size_t bytes, const char *host, size_t host_bytes)
{
	const char *scheme = "http://";
	size_t i = 0;

	while (scheme[i] != '\0') {
		if (i == bytes || lower(origin[i]) != scheme[i])
			return false;
		i++;
	}
	if (bytes - i != host_bytes)
		return false;
	for (size_t at = 0; at < host_bytes; at++) {
		if (lower(origin[i + at]) != lower(host[at]))
			return false;
	}
	return true;
}
