/* SPDX-License-Identifier: MIT */
/*
 * Counts the words of its input in a binary tree and prints the most frequent ones: a small
 * program to try graftrace on. README.md traces it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *left, *right;
	unsigned count;
	char word[32];
};

struct node *add(struct node *node, const char *word);
int read_word(FILE *from, char *word, size_t bytes);
const struct node *most_frequent(const struct node *node, const struct node *best, unsigned below);
void forget(struct node *node);

struct node *add(struct node *node, const char *word)
{
	int order;

	if (node == NULL) {
		node = calloc(1, sizeof(*node));
		if (node == NULL)
			exit(1);
		snprintf(node->word, sizeof(node->word), "%s", word);
		node->count = 1;
		return node;
	}
	order = strcmp(word, node->word);
	if (order < 0)
		node->left = add(node->left, word);
	else if (order > 0)
		node->right = add(node->right, word);
	else
		node->count++;
	return node;
}

int read_word(FILE *from, char *word, size_t bytes)
{
	size_t length = 0;
	int c;

	while ((c = getc(from)) != EOF) {
		if (isalpha(c) && length + 1 < bytes)
			word[length++] = (char)tolower(c);
		else if (length > 0)
			break;
	}
	word[length] = '\0';
	return length > 0;
}

/* The most frequent word below a count, or `best`. */
const struct node *most_frequent(const struct node *node, const struct node *best, unsigned below)
{
	if (node == NULL)
		return best;
	if (node->count < below && (best == NULL || node->count > best->count))
		best = node;
	best = most_frequent(node->left, best, below);
	return most_frequent(node->right, best, below);
}

void forget(struct node *node)
{
	if (node == NULL)
		return;
	forget(node->left);
	forget(node->right);
	free(node);
}

int main(void)
{
	struct node *tree = NULL;
	const struct node *best;
	unsigned below = ~0u;
	char word[32];

	while (read_word(stdin, word, sizeof(word)))
		tree = add(tree, word);
	for (int i = 0; i < 3; i++) {
		best = most_frequent(tree, NULL, below);
		if (best == NULL)
			break;
		printf("%u %s\n", best->count, best->word);
		below = best->count;
	}
	forget(tree);
	return 0;
}
