// What a command under a limit does here: writes the moment of its start to FILE, waits until its input ends, writes
// the moment of its end. `inside FILE`; nanoseconds of the monotonic clock, a line each.
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace {

void say_now(int file) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  char line[32];
  const int length = std::snprintf(line, sizeof line, "%lld\n", now.tv_sec * 1'000'000'000LL + now.tv_nsec);
  (void)!::write(file, line, static_cast<size_t>(length));
}

}  // namespace

int main(int argc, char** argv) {
  const int file = argc == 2 ? ::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (file < 0) return 2;
  say_now(file);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  say_now(file);
  return 0;
}
