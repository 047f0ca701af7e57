#include "nic/tokens.h"

#include "support/at_fork.h"

namespace verbena::nic {

Tokens& Tokens::get() {
  static Tokens* tokens = new Tokens;
  return *tokens;
}

void* Tokens::store(Table& table, kernel::Node& node, std::uint32_t number, void* inner) {
  if (!inner) return nullptr;
  std::lock_guard guard(mutex_over_fork<ForkRank::tokens>());
  std::unique_ptr<Token>& token = table[{&node, number}];
  if (token)
    token->inner = inner;
  else
    token = std::make_unique<Token>(Token{&node, inner});
  return token.get();
}

void* Tokens::send_queue(kernel::Node& node, std::uint32_t qpn) {
  return node.dead() ? nullptr : store(send_, node, qpn, node.device().sq_token(qpn));
}

void* Tokens::completion_queue(kernel::Node& node, std::uint32_t cqn) {
  return node.dead() ? nullptr : store(completion_, node, cqn, node.device().cq_token(cqn));
}

}  // namespace verbena::nic
