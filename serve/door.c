/* SPDX-License-Identifier: MIT */
/*
 * See door.h. Guarantees: a client that stalls or disconnects delays no other; the size of a
 * request is bounded; any command that finds a socket without a listener removes it.
 */
#define _GNU_SOURCE /* struct ucred, POLLRDHUP */
#include "serve/door.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/host/own_thread.h"
#include "core/trace/message.h"

#define CLIENTS	       32
#define LINE_BYTES     1024
#define BLOCK_BYTES    65536
#define WAIT_MS	       20 /* interval at which a waiting reader tries again */
#define IDLE_MS	       30000
#define DISCARD_BLOCKS 1024

struct client {
	struct gt_door *door;
	pthread_t thread;
	bool used;
	atomic_bool done;
	int socket;
};

struct gt_door {
	int (*target)(void *data, struct gt_control_target **control, struct gt_message *message);
	void *data;
	pthread_mutex_t lock; /* guards `control` */
	struct gt_control_target *control;
	int socket;
	int stop[2]; /* a pipe: a byte in it ends the door's threads */
	atomic_bool stopping;
	pthread_t thread;
	struct client clients[CLIENTS];
	char path[GT_DOOR_PATH_BYTES];
};

/* The folder */

static int find_folder(char *path, size_t bytes, bool make, struct gt_message *message)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat state;
	/* sudo may keep the variable: root's folder must not be made in another user's. */
	bool own = runtime != NULL && runtime[0] == '/' && stat(runtime, &state) == 0 &&
		   state.st_uid == geteuid();
	int length = own ? snprintf(path, bytes, "%s/graftrace", runtime)
			 : snprintf(path, bytes, "/tmp/graftrace-%u", (unsigned)geteuid());

	if (length < 0 || (size_t)length >= bytes)
		return gt_fail(message, GT_EINVAL, "XDG_RUNTIME_DIR is too long");
	if (make && mkdir(path, 0700) != 0 && errno != EEXIST)
		return gt_fail(message, GT_EIO, "cannot make '%s': %s", path, strerror(errno));
	if (lstat(path, &state) != 0)
		return gt_fail(message, GT_ENOENT,
			       "no recording runs: 'graftrace record' starts one");
	if (!S_ISDIR(state.st_mode) || state.st_uid != geteuid() || (state.st_mode & 022) != 0)
		return gt_fail(message, GT_EPERM, "'%s' is not a folder of this user's alone",
			       path);
	return 0;
}

static int set_address(struct sockaddr_un *address, const char *folder, const char *name,
		       struct gt_message *message)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", folder, name) <
	    (int)sizeof(address->sun_path))
		return 0;
	return gt_fail(message, GT_EINVAL, "XDG_RUNTIME_DIR is too long");
}

/* Returns a connection, or -1. */
static int try_connect(const struct sockaddr_un *address)
{
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connection >= 0 &&
	    connect(connection, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		int error = errno;

		close(connection);
		connection = -1;
		errno = error;
	}
	return connection;
}

/* One client */

static bool send_all(int connection, const char *bytes, size_t count)
{
	while (count > 0) {
		struct pollfd ready = { .fd = connection, .events = POLLOUT };
		ssize_t sent;

		if (poll(&ready, 1, IDLE_MS) <= 0)
			return false;
		sent = send(connection, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		count -= (size_t)sent;
	}
	return true;
}

static void send_error(int connection, int64_t error, const struct gt_message *message)
{
	char text[sizeof(*message) + 64];
	int bytes = snprintf(text, sizeof(text), "error %d %s\n", (int)error,
			     message->text[0] != '\0' ? message->text : "it could not be done");

	send_all(connection, text, (size_t)bytes);
}

static bool has_gone(const struct client *client, int wait_ms)
{
	struct pollfd end = { .fd = client->socket, .events = POLLRDHUP };

	/* A client may close its sending half after the request: only both halves closed mean
	 * that it has gone. */
	return (poll(&end, 1, wait_ms) > 0 && (end.revents & (POLLHUP | POLLERR)) != 0) ||
	       atomic_load(&client->door->stopping);
}

static void send_directory(struct client *client, const struct gt_control_node *node)
{
	struct gt_control_walk walk = { 0, 0 };
	struct gt_control_entry entry;
	char line[sizeof(entry.name) + 2];

	if (!send_all(client->socket, "ok\n", 3))
		return;
	for (uint32_t i = 0; gt_control_list_next(node, &walk, i, &entry) == 0; i++) {
		int bytes = snprintf(line, sizeof(line), "%s%s\n", entry.name,
				     entry.node.file == NULL ? "/" : "");

		if (!send_all(client->socket, line, (size_t)bytes))
			return;
	}
}

static void send_file(struct client *client, const struct gt_control_node *node)
{
	struct gt_control_handle handle;
	struct gt_message message = { "" };
	char *block = malloc(BLOCK_BYTES);
	bool begun = (node->file->flags & GT_CONTROL_WAITS) != 0;
	int64_t got = block != NULL ? gt_control_open(&handle, node, GT_CONTROL_READ, &message)
				    : GT_ENOMEM;

	if (got != 0) {
		send_error(client->socket, got, &message);
		free(block);
		return;
	}
	if (begun && !send_all(client->socket, "ok\n", 3))
		goto close;
	for (;;) {
		if (begun && has_gone(client, 0))
			break;
		got = gt_control_read(&handle, block, BLOCK_BYTES, &message);
		if (got == GT_EAGAIN) {
			if (has_gone(client, 0))
				break;
			usleep(WAIT_MS * 1000);
			continue;
		}
		if (got < 0 && !begun)
			send_error(client->socket, got, &message);
		if (got >= 0 && !begun)
			begun = send_all(client->socket, "ok\n", 3);
		if (got <= 0 || !begun || !send_all(client->socket, block, (size_t)got))
			break;
	}
close:
	gt_control_close(&handle, &message);
	free(block);
}

/* Reads all that the client sends. Returns the number of bytes, or -1 if they are too many or
 * the client has gone. */
static ssize_t receive(struct client *client, char *bytes, size_t room)
{
	size_t count = 0;

	while (count < room) {
		struct pollfd ready = { .fd = client->socket, .events = POLLIN };
		ssize_t got;

		if (poll(&ready, 1, IDLE_MS) <= 0)
			return -1;
		got = recv(client->socket, bytes + count, room - count, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			return (ssize_t)count;
		count += (size_t)got;
	}
	return -1;
}

static struct gt_control_target *control_of(struct gt_door *door, struct gt_message *message)
{
	struct gt_control_target *control;

	pthread_mutex_lock(&door->lock);
	if (door->control == NULL && door->target(door->data, &door->control, message) != 0)
		door->control = NULL;
	control = door->control;
	pthread_mutex_unlock(&door->lock);
	return control;
}

static void answer(struct client *client, char *request, size_t bytes)
{
	struct gt_message message = { "" };
	struct gt_control_target *control = control_of(client->door, &message);
	char *line_end = memchr(request, '\n', bytes < LINE_BYTES ? bytes : LINE_BYTES);
	char *path = memchr(request, ' ', bytes);
	struct gt_control_node node;
	size_t word, length;
	int error;

	if (control == NULL) {
		send_error(client->socket, GT_EGONE, &message);
		return;
	}
	if (line_end == NULL || path == NULL || path > line_end) {
		gt_message_set(&message, "no request");
		send_error(client->socket, GT_EFORMAT, &message);
		return;
	}
	word = (size_t)(path - request);
	path++;
	while (path < line_end && *path == '/')
		path++;
	length = (size_t)(line_end - path);
	bytes -= (size_t)(line_end + 1 - request);
	if (word == 4 && memcmp(request, "make", 4) == 0) {
		error = gt_control_make(control, path, length, &message);
	} else if (word == 6 && memcmp(request, "remove", 6) == 0) {
		error = gt_control_remove(control, path, length, &message);
	} else {
		error = gt_control_find(control, path, length, &node);
		if (error != 0)
			gt_message_set(&message, "there is no '%.*s'",
				       (int)(length < 80 ? length : 80), path);
		else if (word == 3 && memcmp(request, "get", 3) == 0) {
			if (node.file == NULL)
				send_directory(client, &node);
			else
				send_file(client, &node);
			return;
		} else if (word == 3 &&
			   (memcmp(request, "set", 3) == 0 || memcmp(request, "add", 3) == 0)) {
			error = gt_control_put(&node, request[0] == 's', line_end + 1, bytes,
					       &message);
		} else {
			gt_message_set(&message, "no such request");
			error = GT_EFORMAT;
		}
	}
	if (error != 0)
		send_error(client->socket, error, &message);
	else
		send_all(client->socket, "ok\n", 3);
}

static void *serve(void *data)
{
	struct client *client = data;
	char *request = malloc(LINE_BYTES + GT_DOOR_VALUE_BYTES + 1);
	ssize_t bytes = -1;

	if (request != NULL)
		bytes = receive(client, request, LINE_BYTES + GT_DOOR_VALUE_BYTES + 1);
	if (bytes >= 0)
		answer(client, request, (size_t)bytes);
	/* close() with unread bytes would discard the answer. */
	for (int i = 0; bytes < 0 && i < DISCARD_BLOCKS && request != NULL; i++) {
		if (receive(client, request, BLOCK_BYTES) >= 0)
			break;
	}
	if (bytes < 0 && request != NULL)
		send_error(client->socket, GT_EINVAL,
			   &(struct gt_message){ "the value is longer than 4 MB" });
	free(request);
	shutdown(client->socket, SHUT_RDWR);
	atomic_store(&client->done, true);
	return NULL;
}

/* The door */

static void end_client(struct client *client)
{
	pthread_join(client->thread, NULL);
	close(client->socket);
	client->used = false;
}

static bool may_enter(int connection)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}

static void take_in(struct gt_door *door, int connection)
{
	struct client *client = NULL;

	for (int i = 0; i < CLIENTS; i++) {
		if (door->clients[i].used && atomic_load(&door->clients[i].done))
			end_client(&door->clients[i]);
		if (!door->clients[i].used && client == NULL)
			client = &door->clients[i];
	}
	if (client == NULL || !may_enter(connection)) {
		close(connection);
		return;
	}
	client->door = door;
	client->socket = connection;
	atomic_store(&client->done, false);
	client->used = gt_own_thread_start(&client->thread, serve, client) == 0;
	if (!client->used)
		close(connection);
}

static void *listen_for_clients(void *data)
{
	struct gt_door *door = data;
	struct pollfd wait[] = { { .fd = door->socket, .events = POLLIN },
				 { .fd = door->stop[0], .events = POLLIN } };

	while (poll(wait, 2, -1) >= 0 || errno == EINTR) {
		int connection;

		if (wait[1].revents != 0)
			break;
		if (wait[0].revents == 0)
			continue;
		connection = accept4(door->socket, NULL, NULL, SOCK_CLOEXEC);
		if (connection >= 0)
			take_in(door, connection);
	}
	return NULL;
}

static int bind_socket(struct gt_door *door, const char *folder, pid_t pid,
		       struct gt_message *message)
{
	struct sockaddr_un address;
	char name[32];
	int error;

	snprintf(name, sizeof(name), "%d.sock", (int)pid);
	error = set_address(&address, folder, name, message);
	if (error != 0)
		return error;
	/* The socket is that of an earlier process with the same number. */
	unlink(address.sun_path);
	door->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (door->socket < 0 ||
	    bind(door->socket, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    chmod(address.sun_path, 0600) != 0 || listen(door->socket, CLIENTS) != 0) {
		return gt_fail(message, GT_EIO, "cannot listen at '%s': %s", address.sun_path,
			       strerror(errno));
	}
	memcpy(door->path, address.sun_path, sizeof(door->path));
	return 0;
}

int gt_door_open(pid_t pid,
		 int (*target)(void *data, struct gt_control_target **control,
			       struct gt_message *message),
		 void *data, struct gt_door **door_out, struct gt_message *message)
{
	struct gt_door *door = calloc(1, sizeof(*door));
	char folder[GT_DOOR_PATH_BYTES];
	int error;

	if (door == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory");
	door->target = target;
	door->data = data;
	door->socket = door->stop[0] = door->stop[1] = -1;
	pthread_mutex_init(&door->lock, NULL);
	error = find_folder(folder, sizeof(folder), true, message);
	if (error == 0)
		error = bind_socket(door, folder, pid, message);
	if (error != 0)
		goto fail;
	if (pipe2(door->stop, O_CLOEXEC) != 0 ||
	    gt_own_thread_start(&door->thread, listen_for_clients, door) != 0)
		error = GT_EIO;
	if (error == 0) {
		*door_out = door;
		return 0;
	}
	gt_message_set(message, "no thread for the control files' socket");
	unlink(door->path);
fail:
	if (door->socket >= 0)
		close(door->socket);
	for (int i = 0; i < 2; i++) {
		if (door->stop[i] >= 0)
			close(door->stop[i]);
	}
	pthread_mutex_destroy(&door->lock);
	free(door);
	return error;
}

void gt_door_close(struct gt_door *door)
{
	atomic_store(&door->stopping, true);
	unlink(door->path);
	while (write(door->stop[1], "", 1) < 0 && errno == EINTR)
		continue;
	pthread_join(door->thread, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		if (!door->clients[i].used)
			continue;
		shutdown(door->clients[i].socket, SHUT_RDWR);
		end_client(&door->clients[i]);
	}
	close(door->socket);
	close(door->stop[0]);
	close(door->stop[1]);
	pthread_mutex_destroy(&door->lock);
	free(door);
}

/* Clients */

/* Connects to the one recording that runs. */
static int connect_any(const char *folder, struct gt_message *message)
{
	DIR *directory = opendir(folder);
	struct sockaddr_un address;
	struct dirent *entry;
	char names[256] = "";
	int found = GT_ENOENT;
	int count = 0;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		const char *dot = strstr(entry->d_name, ".sock");
		int connection;

		if (dot == NULL || set_address(&address, folder, entry->d_name, message) != 0)
			continue;
		connection = try_connect(&address);
		if (connection < 0) {
			if (errno == ECONNREFUSED)
				unlink(address.sun_path);
			continue;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %.*s",
			 (int)(dot - entry->d_name), entry->d_name);
		if (count++ == 0)
			found = connection;
		else
			close(connection);
	}
	if (directory != NULL)
		closedir(directory);
	if (count == 1)
		return found;
	if (count == 0)
		return gt_fail(message, GT_ENOENT,
			       "no recording runs: 'graftrace record' starts one");
	close(found);
	return gt_fail(message, GT_ENOENT,
		       "several programs are being recorded: choose one by -P PID, of%s", names);
}

int gt_door_connect(pid_t pid, struct gt_message *message)
{
	char folder[GT_DOOR_PATH_BYTES];
	struct sockaddr_un address;
	char name[32];
	int error = find_folder(folder, sizeof(folder), false, message);
	int connection;

	if (error != 0)
		return error;
	if (pid == 0)
		return connect_any(folder, message);
	snprintf(name, sizeof(name), "%d.sock", (int)pid);
	error = set_address(&address, folder, name, message);
	if (error != 0)
		return error;
	connection = try_connect(&address);
	if (connection >= 0)
		return connection;
	return gt_fail(message, GT_ENOENT, "process %d is not being recorded", (int)pid);
}
