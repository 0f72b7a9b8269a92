#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "clock.h"
#include "session_socket.h"

/* Opens a socket, and makes the address of @token. */
static int socket_open(const char *token, struct sockaddr_un *ret, socklen_t *ret_size)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* the NUL before the name makes it an abstract one */
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1,
		"gpulease-session-%s", token);
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				strlen(ret->sun_path + 1));
	return fd < 0 ? -errno : fd;
}

/* Whether the process at the other end belongs to this user. */
static bool socket_is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == getuid();
}

int session_socket_listen(const char *token)
{
	struct sockaddr_un address;
	socklen_t size;
	autofd int fd = socket_open(token, &address, &size);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 4) < 0)
		return -errno;
	return take_fd(&fd);
}

int session_socket_accept(int fd, int timeout_ms)
{
	int64_t until_ms = clock_boot_ms() + timeout_ms;

	for (;;) {
		struct pollfd fds = { .fd = fd, .events = POLLIN };
		int64_t left_ms = until_ms - clock_boot_ms();
		autofd int peer = -1;

		if (left_ms <= 0)
			return -ETIMEDOUT;
		if (poll(&fds, 1, (int)left_ms) <= 0)
			continue;
		peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (peer >= 0 && socket_is_own(peer))
			return take_fd(&peer);
	}
}

int session_socket_connect(const char *token)
{
	struct sockaddr_un address;
	socklen_t size;
	autofd int fd = socket_open(token, &address, &size);

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&address, size) < 0)
		return -errno;
	return socket_is_own(fd) ? take_fd(&fd) : -EPERM;
}

/* A message of one byte, with room for the descriptors. */
struct message {
	char byte;
	struct iovec bytes;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SESSION_FDS * sizeof(int))];
	struct msghdr all;
};

static void message_init(struct message *message)
{
	memset(message, 0, sizeof(*message));
	message->bytes = (struct iovec){ &message->byte, 1 };
	message->all.msg_iov = &message->bytes;
	message->all.msg_iovlen = 1;
	message->all.msg_control = message->control;
	message->all.msg_controllen = sizeof(message->control);
}

int session_socket_send(int fd, const int fds[SESSION_FDS])
{
	size_t count = fds[SESSION_LOG] < 0 ? 1 : SESSION_FDS;
	struct message message;
	struct cmsghdr *header;

	message_init(&message);
	message.all.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int));
	header = CMSG_FIRSTHDR(&message.all);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	return sendmsg(fd, &message.all, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int session_socket_receive(int fd, int ret[SESSION_FDS])
{
	struct message message;
	struct cmsghdr *header;
	ssize_t n;

	for (int i = 0; i < SESSION_FDS; i++)
		ret[i] = -1;
	message_init(&message);
	do
		n = recvmsg(fd, &message.all, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	header = CMSG_FIRSTHDR(&message.all);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -ENODATA;
	memcpy(ret, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	return 0;
}
