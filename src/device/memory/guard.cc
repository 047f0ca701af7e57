#include "device/memory/guard.h"

#include <signal.h>
#include <string.h>
#include <sys/ucontext.h>
#include <ucontext.h>

#include <atomic>
#include <mutex>

#include "support/at_fork.h"

#if !defined(__x86_64__)
#error "the guarded copy is written for x86-64"
#endif

// Touches neither the stack nor callee-saved registers, so that the handler can turn any instruction of it into
// "return the fault address". Sizes up to 64 by overlapping moves, up to 1 KiB by a loop, beyond by rep movsb.
asm(R"(
  .text
  .p2align 6
  .globl verbena_guarded_copy
  .hidden verbena_guarded_copy
  .type verbena_guarded_copy, @function
  .globl verbena_guarded_read
  .hidden verbena_guarded_read
  .type verbena_guarded_read, @function
verbena_guarded_read:
verbena_guarded_copy:
  .cfi_startproc
  cmpq $16, %rdx
  jb 10f
  cmpq $32, %rdx
  ja 1f
  movdqu (%rsi), %xmm0
  movdqu -16(%rsi,%rdx), %xmm1
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, -16(%rdi,%rdx)
  xorl %eax, %eax
  ret
1:
  cmpq $64, %rdx
  ja 2f
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu -32(%rsi,%rdx), %xmm2
  movdqu -16(%rsi,%rdx), %xmm3
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, 16(%rdi)
  movdqu %xmm2, -32(%rdi,%rdx)
  movdqu %xmm3, -16(%rdi,%rdx)
  xorl %eax, %eax
  ret
2:
  cmpq $1024, %rdx
  ja 4f
  leaq -64(%rsi,%rdx), %r8
  leaq -64(%rdi,%rdx), %r9
3:
  movdqu (%rsi), %xmm0
  movdqu 16(%rsi), %xmm1
  movdqu 32(%rsi), %xmm2
  movdqu 48(%rsi), %xmm3
  movdqu %xmm0, (%rdi)
  movdqu %xmm1, 16(%rdi)
  movdqu %xmm2, 32(%rdi)
  movdqu %xmm3, 48(%rdi)
  addq $64, %rsi
  addq $64, %rdi
  cmpq %r9, %rdi
  jb 3b
  movdqu (%r8), %xmm0
  movdqu 16(%r8), %xmm1
  movdqu 32(%r8), %xmm2
  movdqu 48(%r8), %xmm3
  movdqu %xmm0, (%r9)
  movdqu %xmm1, 16(%r9)
  movdqu %xmm2, 32(%r9)
  movdqu %xmm3, 48(%r9)
  xorl %eax, %eax
  ret
4:
  movq %rdx, %rcx
  rep movsb
  xorl %eax, %eax
  ret
10:
  cmpl $8, %edx
  jb 11f
  movq (%rsi), %rax
  je 12f
  movq -8(%rsi,%rdx), %rcx
  movq %rcx, -8(%rdi,%rdx)
12:
  movq %rax, (%rdi)
  xorl %eax, %eax
  ret
11:
  cmpl $4, %edx
  jb 13f
  movl (%rsi), %eax
  movl -4(%rsi,%rdx), %ecx
  movl %ecx, -4(%rdi,%rdx)
  movl %eax, (%rdi)
  xorl %eax, %eax
  ret
13:
  testl %edx, %edx
  je 14f
  movzbl (%rsi), %eax
  cmpl $1, %edx
  je 15f
  movzbl 1(%rsi), %ecx
  movzbl -1(%rsi,%rdx), %r8d
  movb %cl, 1(%rdi)
  movb %r8b, -1(%rdi,%rdx)
15:
  movb %al, (%rdi)
14:
  xorl %eax, %eax
  ret
  .globl verbena_guarded_copy_end
  .hidden verbena_guarded_copy_end
verbena_guarded_copy_end:
  ret
  .cfi_endproc
  .size verbena_guarded_copy, .-verbena_guarded_copy
)");

extern "C" const char verbena_guarded_copy_end[];

namespace verbena::device {

namespace {

std::atomic<FaultHook> fault_hook{nullptr};
std::atomic<AccessHook> access_hook{nullptr};
struct sigaction previous[NSIG];  // what was there when we came last
struct sigaction first[NSIG];     // and the first time

// The fault that this thread is passing on, and from where. A handler that came after ours, and that we came after again,
// passes it back to us: that is seen by its frame lying below.
struct Passing {
  const void* context;
  std::uintptr_t frame;
  int times;
};
[[gnu::tls_model("initial-exec")]] thread_local Passing passing{};

const struct sigaction& next_handler(int signal_number, const void* context, std::uintptr_t frame) {
  static constexpr struct sigaction kDefault {};
  const bool back = passing.context == context && frame < passing.frame;
  passing = {context, back ? passing.frame : frame, back ? passing.times + 1 : 0};
  return passing.times == 0 ? previous[signal_number] : passing.times == 1 ? first[signal_number] : kDefault;
}

[[gnu::noinline]] void pass_on(int signal_number, siginfo_t* info, void* context) {
  const struct sigaction& old =
      next_handler(signal_number, context, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr) {
    old.sa_sigaction(signal_number, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal_number);
  } else {
    // The default: let the instruction (or the sender's signal) strike again without us.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal_number, &action, nullptr);
    if (info->si_code <= 0) raise(signal_number);
  }
  asm volatile("" ::: "memory");  // no tail call: our frame must be there while the handler runs
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  auto& regs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto ip = static_cast<std::uintptr_t>(regs[REG_RIP]);
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const FaultHook hook = fault_hook.load(std::memory_order_acquire);
  if (info->si_code > 0 && hook != nullptr && hook(address)) return;
  if (info->si_code > 0 && ip >= reinterpret_cast<std::uintptr_t>(&verbena_guarded_copy) &&
      ip < reinterpret_cast<std::uintptr_t>(verbena_guarded_copy_end)) {
    regs[REG_RAX] = static_cast<greg_t>(address != 0 ? address : 1);
    regs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(verbena_guarded_copy_end));
    return;
  }
  const AccessHook access = access_hook.load(std::memory_order_acquire);
  if (info->si_code > 0 && access != nullptr && access(address, context)) return;
  pass_on(signal_number, info, context);
}

}  // namespace

void ensure_guard() {
  std::lock_guard guard(mutex_over_fork<ForkRank::fault_guard>());
  for (const int n : {SIGSEGV, SIGBUS}) {
    struct sigaction now {};
    if (sigaction(n, nullptr, &now) != 0) continue;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_fault) continue;
    previous[n] = now;
    static bool seen[NSIG];
    if (!seen[n]) first[n] = now;
    seen[n] = true;
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(n, &action, nullptr);
  }
}

void set_fault_hook(FaultHook hook) { fault_hook.store(hook, std::memory_order_release); }
void set_access_hook(AccessHook hook) { access_hook.store(hook, std::memory_order_release); }

}  // namespace verbena::device
