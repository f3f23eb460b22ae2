/* SPDX-License-Identifier: MIT */
/*
 * See http_clients.h. There is one lock, held while the connections are walked, which are few.
 */
#include "serve/http_clients.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "attach/process/clock.h"
#include "port/host/own_thread.h"

#define SWEEP_MS 100

struct gt_http_client {
	struct gt_peer peer;
	int socket;
	enum gt_http_phase phase;
	uint64_t since_ms; /* in this phase */
	bool refused;
	bool ending; /* its socket has been shut down */
	struct gt_http_client *next;
};

struct gt_http_clients {
	struct gt_http_limits limits;
	pthread_mutex_t lock; /* guards what follows, and the clients */
	pthread_cond_t changed;
	bool stopping;
	struct gt_http_client *first; /* the newest */
	pthread_t sweeper;
};

static bool is_half_sent(const struct gt_http_client *client)
{
	return !client->ending && client->phase != GT_HTTP_ANSWERED;
}

static bool is_same(const struct gt_peer *a, const struct gt_peer *b)
{
	return a->local == b->local &&
	       (a->local ? a->uid == b->uid : strcmp(a->address, b->address) == 0);
}

static unsigned count_of(const struct gt_http_clients *clients, const struct gt_peer *peer)
{
	unsigned count = 0;

	for (const struct gt_http_client *client = clients->first; client != NULL;
	     client = client->next)
		count += !client->ending && (peer == NULL || is_same(&client->peer, peer));
	return count;
}

/* The connection's thread sees the end of input and closes. */
static void end(struct gt_http_client *client)
{
	client->ending = true;
	shutdown(client->socket, SHUT_RDWR);
}

/* Finds the oldest half-sent request: of `peer`, or (NULL) of the peer with most connections. */
static struct gt_http_client *find_victim(const struct gt_http_clients *clients,
					  const struct gt_peer *peer)
{
	struct gt_http_client *victim = NULL;
	unsigned most = 0;

	for (struct gt_http_client *client = clients->first; client != NULL;
	     client = client->next) {
		unsigned count;

		if (!is_half_sent(client) || (peer != NULL && !is_same(&client->peer, peer)))
			continue;
		count = peer != NULL ? 0 : count_of(clients, &client->peer);
		if (victim == NULL || count > most ||
		    (count == most && client->since_ms <= victim->since_ms)) {
			victim = client;
			most = count;
		}
	}
	return victim;
}

static unsigned allowed_ms(const struct gt_http_limits *limits, enum gt_http_phase phase)
{
	switch (phase) {
	case GT_HTTP_HEAD_COMES:
		return limits->head_ms;
	case GT_HTTP_BODY_COMES:
		return limits->body_ms;
	default:
		return limits->idle_ms;
	}
}

static void *sweep(void *data)
{
	struct gt_http_clients *clients = data;

	pthread_mutex_lock(&clients->lock);
	while (!clients->stopping) {
		uint64_t now = gt_monotonic_ms();
		struct timespec until;

		for (struct gt_http_client *client = clients->first; client != NULL;
		     client = client->next) {
			if (is_half_sent(client) &&
			    now - client->since_ms >= allowed_ms(&clients->limits, client->phase))
				end(client);
		}
		if (clients->first == NULL) {
			pthread_cond_wait(&clients->changed, &clients->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += SWEEP_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&clients->changed, &clients->lock, &until);
	}
	pthread_mutex_unlock(&clients->lock);
	return NULL;
}

struct gt_http_clients *gt_http_clients_create(const struct gt_http_limits *limits)
{
	struct gt_http_clients *clients = calloc(1, sizeof(*clients));
	pthread_condattr_t monotonic;

	if (clients == NULL)
		return NULL;
	clients->limits = *limits;
	pthread_mutex_init(&clients->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&clients->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (gt_own_thread_start(&clients->sweeper, sweep, clients) == 0)
		return clients;
	pthread_cond_destroy(&clients->changed);
	pthread_mutex_destroy(&clients->lock);
	free(clients);
	return NULL;
}

void gt_http_clients_destroy(struct gt_http_clients *clients)
{
	pthread_mutex_lock(&clients->lock);
	clients->stopping = true;
	pthread_cond_signal(&clients->changed);
	pthread_mutex_unlock(&clients->lock);
	pthread_join(clients->sweeper, NULL);
	pthread_cond_destroy(&clients->changed);
	pthread_mutex_destroy(&clients->lock);
	free(clients);
}

struct gt_http_client *gt_http_clients_add(struct gt_http_clients *clients, int socket)
{
	struct gt_http_client *client = calloc(1, sizeof(*client));
	unsigned all = clients->limits.connections, one = all - all / 4;

	if (client == NULL)
		return NULL;
	client->socket = socket;
	client->since_ms = gt_monotonic_ms();
	gt_peer_find(socket, &client->peer);
	pthread_mutex_lock(&clients->lock);
	if (count_of(clients, NULL) >= all || count_of(clients, &client->peer) >= one) {
		bool own = count_of(clients, &client->peer) >= one;
		struct gt_http_client *victim = find_victim(clients, own ? &client->peer : NULL);

		if (victim != NULL)
			end(victim);
		client->refused = victim == NULL;
	}
	client->next = clients->first;
	clients->first = client;
	pthread_cond_signal(&clients->changed);
	pthread_mutex_unlock(&clients->lock);
	return client;
}

void gt_http_clients_remove(struct gt_http_clients *clients, struct gt_http_client *client)
{
	struct gt_http_client **link = &clients->first;

	pthread_mutex_lock(&clients->lock);
	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	pthread_mutex_unlock(&clients->lock);
	free(client);
}

void gt_http_client_enter(struct gt_http_clients *clients, struct gt_http_client *client,
			  enum gt_http_phase phase)
{
	pthread_mutex_lock(&clients->lock);
	client->phase = phase;
	client->since_ms = gt_monotonic_ms();
	pthread_mutex_unlock(&clients->lock);
}

const struct gt_peer *gt_http_client_peer(const struct gt_http_client *client)
{
	return &client->peer;
}

bool gt_http_client_is_refused(const struct gt_http_client *client)
{
	return client->refused;
}
