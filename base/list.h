/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - intrusive doubly linked list, circular with a head
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Append @node at the end of the list whose head is @head. */
static inline void list_add(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Safe to call twice: a removed node is a list of its own. */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define list_first(head, type, member) \
	container_of((head)->next, type, member)

/* @it and @tmp are struct list *; the current node may be removed. */
#define list_each(head, it, tmp) \
	for ((it) = (head)->next, (tmp) = (it)->next; (it) != (head); \
	     (it) = (tmp), (tmp) = (it)->next)

#endif /* BASE_LIST_H */
