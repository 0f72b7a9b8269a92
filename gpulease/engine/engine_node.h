/*
 * On a node: does what comes before, during and after the command (node_order.h).
 *
 * Without a limit and retries this process becomes the command.  Else it stays as its parent, and
 * passes on the signals that it gets.
 */
#ifndef GPULEASE_ENGINE_NODE_H
#define GPULEASE_ENGINE_NODE_H

/*
 * Obeys @words, which come after `node`.  Returns the exit status, after a message if the command
 * did not run; does not return if this process becomes the command.
 */
int engine_node(char **words);

#endif
