// The engine's process-local state: what it knows beyond the shared contexts.
// Threads: as engine.h.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>
#include <vector>

#include "device/memory/errand.h"
#include "device/memory/promote.h"
#include "device/transport/completion.h"
#include "device/transport/engine.h"
#include "device/transport/responder.h"
#include "device/transport/send_wqe.h"
#include "device/transport/shaping.h"
#include "device/transport/steering.h"
#include "device/transport/trace.h"
#include "fabric/packet.h"
#include "fabric/registry.h"

namespace verbena::device {

// The way from a QP to its peer, kept until the QP is modified or the fabric changes.
struct Way {
  NicMap* nic = nullptr;       // null: nobody has the destination GID
  std::uint32_t host = 0;
  std::uint8_t device = 0, port = 0;
  bool multicast = false;
  std::uint8_t egress = 0;     // the port it leaves by; 0: none carries it
  fabric::Address address;
};

// Where a QP's next packet stands with its scheduling elements.
enum class Turn : std::uint8_t { none, waiting, granted };

// Process-local companion of a QpContext of this process, guarded by its sq_lock except where noted.
struct QpLocal {
  std::uint64_t way_version;   // of the registry plus one; 0: not looked up
  Way* way;
  Peer* peer;                  // of the remote QP; null: not looked up
  QpContext* remote;
  std::uint32_t remote_generation;
  std::uint64_t timer_ns;      // earliest heap entry for this QP
  std::atomic<bool> failed_listed;  // on the list of QPs in the error state
  Turn turn;
  std::uint64_t held_ns;       // UD, frames: since when the link holds what is at sq_head; 0: it does not
  struct HeldFrame {
    NicMap* nic;
    Peer* peer;
    std::uint32_t rqn;         // of the receive queue
    FrameTarget target;
  } held_frame;                // for whom
  bool response_booked;        // the next bytes of a READ have their time (qp.deadline_ns)
};

// How a kick ended.
enum class Progress : std::uint8_t { idle, more };

// The physical port that a QP's packets leave by: that of its LAG affinity, or in a bond the other one while it is down.
unsigned egress_port(const NicSegment& segment, const QpContext& qp);

class Engine::Impl {
 public:
  explicit Impl(Nic& nic);
  ~Impl();

  Nic& nic() { return nic_; }
  Slice& slice() const { return nic_.slice(); }
  std::uint32_t me() const { return nic_.me(); }
  QpLocal& local(const QpContext& qp) { return locals_[nic_.index_of(qp)]; }

  // Runs the send queue within the budget; queues what is left. No locks held.
  void kick(QpContext& qp);
  // With sq_lock held.
  void flush_sq(QpContext& qp, Deferred& deferred);
  // To the error state with sq_lock held; takes rx_lock.
  void fail(QpContext& qp, Deferred& deferred);
  // Looks at interrupts and attention that arose while locks were held. No locks held.
  void settle();
  // By a thread of the process, with no lock held: `work(Completer&)` on our own CQs and EQs, and what that leaves to do.
  template <class Work>
  void complete(Work&& work) {
    {
      Deferred deferred(&nic_.self());
      Completer completer(nic_.self(), me(), deferred);
      work(completer);
    }
    settle();
  }

  void step();  // by the program
  void work();  // the same by the helper
  std::size_t cq_timer_count();
  void start_helper();
  void stop_helper();
  void abandon();

  void arm_timer(QpContext& qp, std::uint64_t delay_ns, TimerKind kind);
  // The peer has posted enough receives to make it worth trying before the RNR timer ends.
  bool receiver_ready(const QpContext& qp, QpLocal& local);
  void list_failed(QpContext& qp);
  void invalidate_way(QpContext& qp);
  // With sq_lock held: what holds the QP's packets back has changed.
  void reshape(QpContext& qp);
  // Somebody waits for a turn: serve_turns() is to run when the next one is due.
  void arm_turns();

  // fabric
  NicMap* visit(std::uint32_t host, std::uint8_t device);
  bool find_way(QpContext& qp, QpLocal& local);
  bool resolve(QpContext& qp, QpLocal& local);
  bool leads_back(const Way& way, const QpContext& responder) const;
  bool address_from(const QpContext& qp, const Path& path, Way& way);
  void for_each_nic(const std::function<void(NicMap&)>& visitor);
  std::string host_name(std::uint32_t host) const;

  std::function<void(unsigned)> interrupt;
  std::atomic<bool> has_interrupt{false};
  std::atomic<int> watched_sessions{0};  // CQs of compressed CQEs
  Promoter promoter;
  ErrandDuty errands;
  Shaping shaping;
  std::unique_ptr<Trace> trace;  // captures frames; null: off

 private:
  friend class Requester;
  void queue_work(QpContext& qp);
  void attend();
  // cq_events.cc
  void attend_cqs();
  void run_cq_timers();
  void look_at_cq(std::uint32_t index);
  bool owes_event() const;
  void run_timers();
  void look_at_receivers();
  void serve_turns();
  void grant_turn(QpContext& qp);
  void run_work();
  void check_failed();
  void dispatch_interrupts();
  void helper();
  void set_pending(std::uint32_t bits) { slice().header.pending.fetch_or(bits, std::memory_order_seq_cst); }
  void clear_pending(std::uint32_t bits) { slice().header.pending.fetch_and(~bits, std::memory_order_seq_cst); }

  // A QP in the error state; of another generation, the entry means nothing any more.
  struct Failed {
    std::uint32_t index;
    std::uint32_t generation;
  };
  struct Timer {
    std::uint64_t at;
    std::uint32_t index;
    std::uint32_t generation;
    bool operator>(const Timer& o) const { return at > o.at; }
  };
  using Timers = std::priority_queue<Timer, std::vector<Timer>, std::greater<>>;
  // Under mutex_; `next` is the earliest of them. Whether that is this one now: the helper is to be woken then.
  bool list_timer(Timers& timers, std::atomic<std::uint64_t>& next, const Timer& timer);

  Nic& nic_;
  QpLocal* locals_ = nullptr;
  std::shared_ptr<fabric::Registry> registry_;
  std::mutex visits_mutex_;
  std::map<std::uint64_t, std::unique_ptr<NicMap>> visits_;
  bool all_visited_ = false;
  std::uint64_t all_visited_version_ = 0;

  std::mutex mutex_;  // the lists below
  std::vector<std::unique_ptr<Way>> ways_;  // what QpLocal::way points to; a QP of the same index uses it again
  Timers timers_;
  std::atomic<std::uint64_t> next_deadline_{~0ull};
  Timers cq_timers_;  // of CQs that owe events
  std::unordered_map<std::uint32_t, std::uint64_t> cq_looks_;  // the one of them that counts, by the CQ's index
  std::atomic<std::uint64_t> next_event_{~0ull};
  std::uint64_t turns_at_ = ~0ull;  // earliest of timers_ that is for turns
  static constexpr std::uint32_t kTurns = ~0u;  // in place of a QP's index
  std::deque<std::uint32_t> work_;
  std::deque<Failed> failed_;
  std::vector<std::uint32_t> rnr_waiters_;
  std::atomic<std::uint32_t> rnr_count_{0};
  std::uint64_t receivers_seen_ns_ = 0;
  std::uint64_t failed_checked_ns_ = 0;

  std::atomic<std::uint64_t> turns_{0};  // grows while the program polls
  std::atomic_flag stepping_ = ATOMIC_FLAG_INIT;
  std::mutex helper_mutex_;
  std::thread helper_;
  std::atomic<bool> stop_{false}, helper_done_{false};
  int pid_ = 0;
};

}  // namespace verbena::device
