// Faults that are not ours go to the program's handlers, whatever order they came in.
#include "device/memory/guard.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace verbena::device {
namespace {

sigjmp_buf back;
struct sigaction before;
int calls = 0;

void jumps(int, siginfo_t*, void*) {
  ++calls;
  siglongjmp(back, 1);
}
// As crash reporters do: looks, then tells whoever was there before.
void chains(int n, siginfo_t* info, void* context) {
  if (++calls > 10) _exit(3);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(n, info, context);
  signal(n, SIG_DFL);
}

void install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
}

volatile char* nowhere() {
  static void* p = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<volatile char*>(p);
}

TEST(Guard, CopiesAnswerAndOtherFaultsReachTheProgram) {
  ensure_guard();
  char here[64]{};
  EXPECT_NE(guarded_copy(here, const_cast<const char*>(nowhere()), 64), 0u);
  EXPECT_NE(guarded_read(here, const_cast<const char*>(nowhere()), 8), 0u);
  install(jumps);
  ensure_guard();
  calls = 0;
  // Again and again from the same place: each is a fault of its own.
  for (int i = 0; i < 5; ++i)
    if (sigsetjmp(back, 1) == 0) (void)nowhere()[0];
  EXPECT_EQ(calls, 5);
  EXPECT_NE(guarded_copy(here, const_cast<const char*>(nowhere()), 64), 0u);
  signal(SIGSEGV, SIG_DFL);  // later tests of this process shall not jump back here
  ensure_guard();
}

// By the signal; a sanitizer's own handler, the last in the chain, ends the process with a status instead.
bool ended_by_the_fault(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return true;
#endif
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST(GuardDeathTest, HandlersThatPassFaultsToOneAnotherEnd) {
  EXPECT_EXIT(
      {
        ensure_guard();
        install(chains);  // came after ours,
        ensure_guard();   // and we after it
        (void)nowhere()[0];
      },
      ended_by_the_fault, "");
}

}  // namespace
}  // namespace verbena::device
