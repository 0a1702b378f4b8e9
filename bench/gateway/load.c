// bench/gateway/load.c: both ends of a measured proxy: the origin, and a client with or without the proxy. One thread each, epoll; compiled by
// bench/gateway/place.mjs. Invariant: an answer that differs from the origin's counts as failed, never as done.
//
//   load origin PORT|ADDRESS:PORT...                  default 127.0.0.1; prints "ready"
//   load tunnels via=… to=NAME:PORT many=16 seconds=1  a new connection per request, `many` at a time
//   load down|up via=… to=… seconds=1                  one tunnel, as fast as possible
//   load events via=… to=… many=200 seconds=1          streams of events, with their delays
//   load idle via=… to=… many=1000                     opens tunnels, prints "held", and keeps them until its input ends
//   load once via=… to=…                               one tunnel, one answer
//   load processor pids=1,2                            the processor time of these processes
//   load loopback up                                   brings loopback up in its network namespace
//   load obey lines                                    runs each line of its input as arguments of load, and prints the status
//
// via: direct, direct:ADDRESS, tcp:PORT, unix:PATH, or env: the proxy in http_proxy with its user and password. first=FILE sends the file
// instead of a GET. answer=parts: the origin writes head and body separately, as many servers do. pids=1,2: also measures their processor time.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define EVENT_SIZE 64
#define EVENT_TICKS 25 // ms between two events of a stream
#define REPORT_EACH (1024 * 1024)
#define MOST 65536
#define PATIENCE 60 // seconds to open all connections

#define BODY 26
static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 26\r\n\r\nthe answer of the origin.\n";
static const char EVENTS[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n";
static const char BULK[] = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1099511627776\r\n\r\n";
static char chunk[CHUNK], inbox[CHUNK];
static int poller;

typedef struct conn {
  int fd, state, slot;
  uint64_t began, got, reported;
  size_t kept;
  char part[2048]; // of a head or an event that has not arrived whole
} conn;

static void fail(const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t nanoseconds(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void watch(conn *c, int how, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  if (epoll_ctl(poller, how, c->fd, &event) != 0) fail("epoll_ctl");
}

static void no_delay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// A short write of a few bytes means a broken peer.
static int send_all(conn *c, const char *bytes, size_t length) {
  return send(c->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static struct sockaddr_in endpoint(const char *address, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) errno = EINVAL, fail(address);
  return at;
}

static struct sockaddr_in loopback(int port) { return endpoint("127.0.0.1", port); }

// ---- the origin

enum { ASKED, FLOODING, SWALLOWING, TELLING, LISTENING, TICKING };

static conn *streams[MOST];
static int stream_count;

static void drop(conn *c) {
  if (c->state == TELLING) {
    streams[c->slot] = streams[--stream_count];
    streams[c->slot]->slot = c->slot;
  }
  close(c->fd);
  free(c);
}

static void take(conn *listener) {
  for (;;) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    no_delay(fd);
    conn *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->state = ASKED;
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
  }
}

// The length of the request at the beginning of `part`; 0: incomplete.
static size_t question_length(conn *c) {
  if (c->kept > 5 && c->part[0] == 0x16) {
    size_t length = 5 + ((size_t)(uint8_t)c->part[3] << 8 | (uint8_t)c->part[4]);
    return c->kept >= length ? length : 0;
  }
  char *end = memmem(c->part, c->kept, "\r\n\r\n", 4);
  return end == NULL ? 0 : (size_t)(end - c->part) + 4;
}

static int answer(conn *c) {
  for (size_t length; (length = question_length(c)) > 0;) {
    if (memcmp(c->part, "GET /bulk ", 10) == 0) {
      c->state = FLOODING;
      watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return send_all(c, BULK, sizeof BULK - 1);
    }
    if (memcmp(c->part, "POST /sink ", 11) == 0) {
      c->state = SWALLOWING;
      c->got = c->kept - length;
      return 1;
    }
    if (memcmp(c->part, "GET /events ", 12) == 0) {
      if (stream_count == MOST) return 0;
      c->state = TELLING;
      c->slot = stream_count;
      streams[stream_count++] = c;
      return send_all(c, EVENTS, sizeof EVENTS - 1);
    }
    size_t first = memcmp(c->part, "GET /parts ", 11) == 0 ? sizeof ANSWER - 1 - BODY : sizeof ANSWER - 1;
    if (!send_all(c, ANSWER, first)) return 0;
    if (first < sizeof ANSWER - 1 && !send_all(c, ANSWER + first, BODY)) return 0;
    memmove(c->part, c->part + length, c->kept - length);
    c->kept -= length;
  }
  return c->kept < sizeof c->part;
}

static int hear(conn *c) {
  int asked = c->state == ASKED;
  ssize_t n = asked ? recv(c->fd, c->part + c->kept, sizeof c->part - c->kept, 0) : recv(c->fd, inbox, CHUNK, 0);
  if (n < 0) return errno == EAGAIN;
  if (n == 0) return 0;
  if (asked) {
    c->kept += (size_t)n;
    return answer(c);
  }
  if (c->state != SWALLOWING) return 1;
  c->got += (uint64_t)n;
  if (c->got - c->reported < REPORT_EACH) return 1;
  c->reported = c->got;
  return send_all(c, (const char *)&c->got, sizeof c->got);
}

// Each stream has its own millisecond, so that events do not delay each other.
static void tell(uint64_t tick) {
  for (int i = (int)(tick % EVENT_TICKS); i < stream_count; i += EVENT_TICKS) {
    char event[EVENT_SIZE + 1];
    int n = snprintf(event, sizeof event, "data: %020llu", (unsigned long long)nanoseconds());
    memset(event + n, '.', (size_t)(EVENT_SIZE - n));
    memcpy(event + EVENT_SIZE - 2, "\n\n", 2);
    send(streams[i]->fd, event, EVENT_SIZE, MSG_NOSIGNAL); // The closing of the connection is seen by the poller.
  }
}

static void serve(int count, char **ports) {
  conn *ticker = calloc(1, sizeof *ticker);
  ticker->state = TICKING;
  ticker->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec each = {{0, 1000000}, {0, 1000000}};
  timerfd_settime(ticker->fd, 0, &each, NULL);
  watch(ticker, EPOLL_CTL_ADD, EPOLLIN);
  for (int i = 0; i < count; i++) {
    conn *listener = calloc(1, sizeof *listener);
    int one = 1;
    char *port = strchr(ports[i], ':');
    if (port != NULL) *port++ = 0;
    struct sockaddr_in at = port == NULL ? loopback(atoi(ports[i])) : endpoint(ports[i], atoi(port));
    listener->state = LISTENING;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener->fd, (struct sockaddr *)&at, sizeof at) != 0) fail(ports[i]);
    if (listen(listener->fd, 4096) != 0) fail("listen");
    watch(listener, EPOLL_CTL_ADD, EPOLLIN);
  }
  puts("ready");
  fflush(stdout);
  for (uint64_t tick = 0;;) {
    struct epoll_event events[256];
    int n = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < n; i++) {
      conn *c = events[i].data.ptr;
      uint64_t passed;
      if (c->state == LISTENING) take(c);
      else if (c->state == TICKING) {
        if (read(c->fd, &passed, sizeof passed) == sizeof passed)
          while (passed-- > 0) tell(tick++);
      } else if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !hear(c)) drop(c);
      else if (c->state == FLOODING && (events[i].events & EPOLLOUT)) send(c->fd, chunk, CHUNK, MSG_NOSIGNAL);
    }
  }
}

// ---- the client

enum { CONNECTING, KNOCKING, OPEN };

static struct {
  const char *mode, *via, *to;
  int many, port;
  double seconds;
  char connect[1024], question[2048];
  size_t connect_length, question_length;
  int pids[64], pid_count;
} ask = {.many = 1, .seconds = 1};

static uint64_t done, failed, opened, bytes, first_at, *samples;
static size_t sample_count, sample_room;

static void sample(uint64_t value) {
  if (sample_count == sample_room) samples = realloc(samples, (sample_room = sample_room * 2 + 4096) * sizeof *samples);
  samples[sample_count++] = value;
}

static int dial(void) {
  if (strncmp(ask.via, "unix:", 5) == 0) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", ask.via + 5);
    // Blocking: a full queue of such a socket is an error otherwise.
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) fail(ask.via);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
  }
  int far = strncmp(ask.via, "direct:", 7) == 0;
  struct sockaddr_in at = far ? endpoint(ask.via + 7, ask.port) : loopback(strncmp(ask.via, "tcp:", 4) == 0 ? atoi(ask.via + 4) : ask.port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  no_delay(fd);
  if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0 && errno != EINPROGRESS) fail(ask.via);
  return fd;
}

static void begin(conn *c) {
  *c = (conn){.began = nanoseconds(), .state = CONNECTING};
  c->fd = dial();
  watch(c, EPOLL_CTL_ADD, EPOLLOUT);
}

static int is(const char *mode) { return strcmp(ask.mode, mode) == 0; }

static int enter(conn *c) {
  c->state = OPEN;
  c->kept = 0;
  opened++;
  if (is("idle")) return 1;
  if (is("up")) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  return send_all(c, ask.question, ask.question_length);
}

// Skips the head of an answer once; the remaining bytes move to the front of `data`.
static int skip_head(conn *c, char *data, size_t *length) {
  size_t room = sizeof c->part - 1 - c->kept, n = *length < room ? *length : room;
  memcpy(c->part + c->kept, data, n);
  char *end = memmem(c->part, c->kept + n, "\r\n\r\n", 4);
  if (end == NULL) {
    c->kept += n;
    *length = 0;
    return c->kept < sizeof c->part - 1;
  }
  size_t used = (size_t)(end - c->part) + 4 - c->kept;
  c->part[c->kept + used] = 0;
  memmove(data, data + used, *length -= used);
  return strncmp(c->part, "HTTP/1.", 7) == 0 && strncmp(c->part + 8, " 200", 4) == 0 ? 2 : 0;
}

static int arrived_event(conn *c, const char *data, size_t length) {
  while (length > 0) {
    size_t n = EVENT_SIZE - c->kept < length ? EVENT_SIZE - c->kept : length;
    memcpy(c->part + c->kept, data, n);
    data += n;
    length -= n;
    if ((c->kept += n) < EVENT_SIZE) return 1;
    c->kept = 0;
    if (memcmp(c->part, "data: ", 6) != 0) return 0;
    sample(nanoseconds() - strtoull(c->part + 6, NULL, 10));
  }
  return 1;
}

// 0: broken; 1: go on; 2: finished.
static int arrived(conn *c, char *data, size_t length) {
  if (c->state == KNOCKING) {
    int past = skip_head(c, data, &length);
    if (past != 2) return past;
    if (!enter(c)) return 0;
    if (length == 0) return 1;
  }
  if (is("events") || is("down")) {
    if (c->got == 0) {
      int past = skip_head(c, data, &length);
      if (past != 2) return past;
      c->got = 1;
      c->kept = 0;
      if (is("down")) first_at = nanoseconds();
      return is("down") || arrived_event(c, data, length);
    }
    if (is("events")) return arrived_event(c, data, length);
    bytes += length;
    return data[0] == 'x' && data[length - 1] == 'x';
  }
  if (is("up")) {
    // The origin reports its received bytes as eight-byte numbers.
    for (size_t i = 0; i < length; i++) {
      ((char *)&c->reported)[c->kept++ % 8] = data[i];
      if (c->kept % 8 != 0) continue;
      if (first_at == 0) first_at = nanoseconds(), c->got = c->reported;
      else bytes = c->reported - c->got;
    }
    return 1;
  }
  if (is("idle") || c->got + length > sizeof ANSWER - 1 || memcmp(ANSWER + c->got, data, length) != 0) return 0;
  return (c->got += length) == sizeof ANSWER - 1 ? 2 : 1;
}

static int step(conn *c, uint32_t events) {
  if (c->state == CONNECTING) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return 0;
    watch(c, EPOLL_CTL_MOD, EPOLLIN);
    if (strncmp(ask.via, "direct", 6) == 0) return enter(c);
    c->state = KNOCKING;
    return send_all(c, ask.connect, ask.connect_length);
  }
  if (events & EPOLLOUT) send(c->fd, chunk, CHUNK, MSG_NOSIGNAL);
  if ((events & ~(uint32_t)EPOLLOUT) == 0) return 1;
  ssize_t n = recv(c->fd, inbox, CHUNK, 0);
  if (n < 0 && errno == EAGAIN) return 1;
  return n > 0 ? arrived(c, inbox, (size_t)n) : 0;
}

static uint64_t processor_time(void) {
  uint64_t sum = 0;
  for (int i = 0; i < ask.pid_count; i++) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(ask.pids[i], &clock) != 0 || clock_gettime(clock, &used) != 0) fail("processor time");
    sum += (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
  }
  return sum;
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static double share(double part) {
  return sample_count == 0 ? 0 : (double)samples[(size_t)(part * (double)(sample_count - 1))] / 1000;
}

static void report(uint64_t began, uint64_t cpu) {
  uint64_t now = nanoseconds();
  double seconds = (double)(now - (first_at == 0 ? began : first_at)) / 1e9;
  qsort(samples, sample_count, sizeof *samples, by_size);
  printf("{\"count\":%llu,\"failed\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"cpuUs\":%.1f,\"samples\":%zu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f}\n",
         (unsigned long long)done, (unsigned long long)failed, (unsigned long long)bytes, seconds,
         (double)(processor_time() - cpu) / 1000, sample_count, share(0.5), share(0.9), share(0.99));
}

static void hold(void) {
  printf("held\n");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) continue;
  exit(0);
}

static void run(void) {
  conn *all = calloc((size_t)ask.many, sizeof *all);
  int idle = is("idle"), started = idle && ask.many > 64 ? 64 : ask.many;
  uint64_t began = nanoseconds(), cpu = processor_time();
  uint64_t until = began + (uint64_t)((is("events") ? PATIENCE : ask.seconds) * 1e9);
  for (int i = 0; i < started; i++) begin(&all[i]);
  for (uint64_t now; (now = nanoseconds()) < until;) {
    struct epoll_event events[256];
    int n = epoll_wait(poller, events, 256, (int)((until - now) / 1000000) + 1);
    for (int i = 0; i < n; i++) {
      conn *c = events[i].data.ptr;
      uint64_t before = opened;
      int went = step(c, events[i].events);
      if (idle && opened > before && started < ask.many) begin(&all[started++]);
      if (went == 1) continue;
      close(c->fd);
      if (went == 2) {
        sample(nanoseconds() - c->began);
        done++;
      } else failed++;
      if (is("once") || failed > 1000 || !is("tunnels")) {
        report(began, cpu);
        exit(failed > 0);
      }
      begin(c);
    }
    if (idle && opened == (uint64_t)ask.many) hold();
    if (is("events") && first_at == 0 && opened == (uint64_t)ask.many) {
      // Discards samples from before all streams were open.
      sample_count = 0;
      first_at = nanoseconds();
      until = first_at + (uint64_t)(ask.seconds * 1e9);
      cpu = processor_time();
    }
  }
  if (idle || (is("events") && first_at == 0)) errno = ETIMEDOUT, fail("opening them all");
  report(began, cpu);
}

static void base64(const uint8_t *from, size_t length, char *to) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < length; i += 3) {
    uint32_t three = (uint32_t)from[i] << 16 | (i + 1 < length ? from[i + 1] << 8 : 0) | (i + 2 < length ? from[i + 2] : 0);
    for (int digit = 0; digit < 4; digit++)
      *to++ = i + (size_t)digit > length ? '=' : digits[three >> (18 - 6 * digit) & 63];
  }
  *to = 0;
}

// Converts http://USER:PASSWORD@HOST:PORT, or one without a user, to the proxy's address and an authorization header.
static void read_environment(char *via, size_t room, char *authorization, size_t authorization_room) {
  const char *url = getenv("http_proxy");
  if (url == NULL || strncmp(url, "http://", 7) != 0) errno = EINVAL, fail("http_proxy");
  const char *who = url + 7, *at = strrchr(who, '@'), *port = strrchr(who, ':');
  if (port == NULL || port < at) errno = EINVAL, fail(url);
  snprintf(via, room, "tcp:%d", atoi(port + 1));
  if (at == NULL) return;
  uint8_t plain[512];
  char coded[700];
  size_t length = 0;
  for (const char *c = who; c < at; c++) {
    unsigned code = (unsigned char)*c;
    if (*c == '%' && sscanf(c + 1, "%2x", &code) == 1) c += 2;
    if (length == sizeof plain) errno = E2BIG, fail("http_proxy");
    plain[length++] = (uint8_t)code;
  }
  base64(plain, length, coded);
  snprintf(authorization, authorization_room, "Proxy-Authorization: Basic %s\r\n", coded);
}

static void read_arguments(int count, char **list) {
  const char *request = is("down") ? "GET /bulk" : is("events") ? "GET /events" : is("up") ? "POST /sink" : "GET /";
  const char *first = NULL;
  static char via[32], authorization[800];
  for (int i = 0; i < count; i++) {
    char *value = strchr(list[i], '=');
    if (value == NULL) errno = EINVAL, fail(list[i]);
    *value++ = 0;
    if (strcmp(list[i], "via") == 0) ask.via = value;
    else if (strcmp(list[i], "to") == 0) ask.to = value;
    else if (strcmp(list[i], "many") == 0) ask.many = atoi(value);
    else if (strcmp(list[i], "seconds") == 0) ask.seconds = atof(value);
    else if (strcmp(list[i], "first") == 0) first = value;
    else if (strcmp(list[i], "answer") == 0 && strcmp(value, "parts") == 0) request = "GET /parts";
    else if (strcmp(list[i], "pids") == 0)
      for (char *pid = strtok(value, ","); pid != NULL; pid = strtok(NULL, ",")) ask.pids[ask.pid_count++] = atoi(pid);
    else errno = EINVAL, fail(list[i]);
  }
  if (is("idle")) ask.seconds = PATIENCE;
  if (is("processor")) return;
  if (ask.via == NULL || ask.to == NULL || strchr(ask.to, ':') == NULL) errno = EINVAL, fail("via and to");
  if (strcmp(ask.via, "env") == 0) {
    read_environment(via, sizeof via, authorization, sizeof authorization);
    ask.via = via;
  }
  ask.port = atoi(strchr(ask.to, ':') + 1);
  ask.connect_length = (size_t)snprintf(ask.connect, sizeof ask.connect, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", ask.to, ask.to, authorization);
  ask.question_length = (size_t)snprintf(ask.question, sizeof ask.question, "%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", request, ask.to,
                                         is("up") ? "Content-Length: 1099511627776\r\n" : "");
  if (first == NULL) return;
  int fd = open(first, O_RDONLY);
  ssize_t n = fd < 0 ? -1 : read(fd, ask.question, sizeof ask.question);
  if (n <= 0) fail(first);
  ask.question_length = (size_t)n;
}

static void loopback_up(void) {
  struct ifreq lo = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (ioctl(fd, SIOCGIFFLAGS, &lo) != 0) fail("lo");
  lo.ifr_flags |= IFF_UP;
  if (ioctl(fd, SIOCSIFFLAGS, &lo) != 0) fail("lo");
}

// For callers that can start only one program, such as in a sandbox.
static void obey(char *self) {
  puts("ready");
  fflush(stdout);
  for (char line[1024]; fgets(line, sizeof line, stdin) != NULL;) {
    char *arguments[16] = {self};
    int count = 1, status;
    for (char *part = strtok(line, " \n"); part != NULL && count < 15; part = strtok(NULL, " \n")) arguments[count++] = part;
    pid_t child = fork();
    if (child == 0) {
      execv(self, arguments);
      _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) fail("obey");
    printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) errno = EINVAL, fail("a mode and its arguments");
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGPIPE, SIG_IGN);
  memset(chunk, 'x', CHUNK);
  poller = epoll_create1(EPOLL_CLOEXEC);
  ask.mode = argv[1];
  if (is("loopback")) {
    loopback_up();
    return 0;
  }
  if (is("obey")) {
    obey(argv[0]);
    return 0;
  }
  if (is("origin")) serve(argc - 2, argv + 2);
  read_arguments(argc - 2, argv + 2);
  if (is("processor")) {
    printf("%.1f\n", (double)processor_time() / 1000);
    return 0;
  }
  run();
  return failed > 0;
}
