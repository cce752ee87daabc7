/* A line echo server on epoll: one thread. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { LONGEST = 64 * 1024 + 1 };

struct connection { int fd; size_t length; char input[LONGEST]; };

/* Echoes the whole lines that have come. Returns 0 at the end of the connection. */
static int echo(struct connection *own) {
  ssize_t got = read(own->fd, own->input + own->length, LONGEST - own->length);
  if (got <= 0) return 0;
  own->length += got;
  char *last = memrchr(own->input, '\n', own->length);
  if (!last) return own->length < LONGEST;
  size_t end = last + 1 - own->input;
  if (write(own->fd, own->input, end) != (ssize_t)end) return 0;
  memmove(own->input, own->input + end, own->length -= end);
  return 1;
}

int main(int count, char **words) {
  char *colon = count == 2 ? strrchr(words[1], ':') : NULL;
  if (!colon) return 2;
  *colon = 0;
  struct sockaddr_in address = {AF_INET, htons(atoi(colon + 1)), {inet_addr(words[1])}, {0}};
  int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) return 1;
  signal(SIGPIPE, SIG_IGN);
  struct epoll_event event = {EPOLLIN, {NULL}}, ready[64];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int events = epoll_wait(poll, ready, 64, -1);
    for (int at = 0; at < events; at++) {
      struct connection *own = ready[at].data.ptr;
      if (own && !echo(own)) {
        close(own->fd);
        free(own);
      } else if (!own && (own = calloc(1, sizeof *own))) {
        if ((own->fd = accept(listener, NULL, NULL)) < 0) return 1;
        setsockopt(own->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        event.data.ptr = own;
        epoll_ctl(poll, EPOLL_CTL_ADD, own->fd, &event);
      }
    }
  }
}
