// Every operation of UCP between two processes, each byte checked: tagged messages (expected and unexpected), active
// messages, streams, put, get, and atomics under contention. UCX_TLS says over what.
//
//   ucp_data [--threads N [--shared]] [--most BYTES] [--rounds N] TEST...
//
// TEST is tag, am, stream, put, get or atomics. With threads each has a worker of its own, or all share one (and then no
// stream: an endpoint has but one).
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "ucp.h"

using namespace peers;

namespace {

struct Options {
  unsigned threads = 1;
  bool shared = false;
  size_t most = 16u << 20;
  unsigned rounds = 4;
  std::vector<std::string> tests;
};

// The other process, beside UCP.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  std::string swap(const std::string& mine) {
    const uint32_t length = static_cast<uint32_t>(mine.size());
    put(&length, sizeof length);
    put(mine.data(), mine.size());
    uint32_t theirs;
    get(&theirs, sizeof theirs);
    std::string bytes(theirs, '\0');
    get(bytes.data(), theirs);
    return bytes;
  }

 private:
  void put(const void* data, size_t length) {
    REQUIRE(write(fd_, data, length) == static_cast<ssize_t>(length));
  }
  void get(void* data, size_t length) {
    for (size_t at = 0; at < length;) {
      const ssize_t now = read(fd_, static_cast<char*>(data) + at, length - at);
      REQUIRE(now > 0);
      at += static_cast<size_t>(now);
    }
  }
  int fd_;
};

constexpr unsigned kActiveMessage = 7;

// What one thread does with its peer of the same number in the other process.
struct Party {
  const Options& options;
  Worker& worker;
  unsigned number;                                                // of the thread
  bool first;                                                     // of the two processes
  unsigned char* window;                                          // that the peer writes and reads, `most` bytes
  uint64_t peer_window;                                           // and the peer's
  ucp_rkey_h peer_key;                                            // to it
  uint64_t* counters;                                             // of the process, for all to change
  uint64_t peer_counters;
  ucp_rkey_h counters_key;
  std::vector<unsigned char> buffer = std::vector<unsigned char>(options.most);

  uint64_t tag(unsigned kind) const { return uint64_t{number} << 32 | kind; }
  size_t message(unsigned round, bool from_first) const { return number * 1000 + round * 2 + from_first; }

  void* send(const void* data, size_t length, unsigned kind) {
    ucp_request_param_t param{};
    return ucp_tag_send_nbx(worker.peer(), data, length, tag(kind), &param);
  }
  void* receive(void* data, size_t length, unsigned kind) {
    ucp_request_param_t param{};
    return ucp_tag_recv_nbx(worker.handle(), data, length, tag(kind), ~0ull, &param);
  }
  // Both are here, and everything either did before is done. Not for while a send waits for its receive.
  void meet() {
    worker.flush();
    greet();
  }
  void greet() {
    char out = 1, in = 0;
    void* sending = send(&out, 1, 99);
    worker.finish(receive(&in, 1, 99));
    worker.finish(sending);
    REQUIRE(in == 1);
  }
  std::vector<size_t> sizes() const {
    std::vector<size_t> all;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, size_t{63}, size_t{200}, size_t{1025}, size_t{4096},
                              size_t{8191}, size_t{65536}, size_t{300001}, size_t{1} << 20, size_t{16} << 20})
      if (size <= options.most) all.push_back(size);
    return all;
  }

  void tagged() {
    std::vector<unsigned char> out(options.most);
    for (const size_t size : sizes())
      for (unsigned round = 0; round < options.rounds; ++round) {
        fill(out.data(), size, message(round, first));
        memset(buffer.data(), 0, size);
        const bool expected = round % 2 == 0;  // else the message is there before the receive
        void* receiving = expected ? receive(buffer.data(), size, 1) : nullptr;
        if (expected) meet();
        void* sending = send(out.data(), size, 1);
        if (!expected) {
          if (size <= 1025) worker.finish(std::exchange(sending, nullptr));
          greet();
          receiving = receive(buffer.data(), size, 1);
        }
        worker.finish(receiving);
        worker.finish(sending);
        verify(buffer.data(), size, message(round, !first), "tag");
      }
  }

  void put() {
    for (const size_t size : sizes())
      for (unsigned round = 0; round < options.rounds && size; ++round) {
        memset(window, 0, size);
        fill(buffer.data(), size, message(round, first));
        meet();
        ucp_request_param_t param{};
        worker.finish(ucp_put_nbx(worker.peer(), buffer.data(), size, peer_window, peer_key, &param));
        meet();
        verify(window, size, message(round, !first), "put");
        meet();
      }
  }

  void get() {
    for (const size_t size : sizes())
      for (unsigned round = 0; round < options.rounds && size; ++round) {
        fill(window, size, message(round, first));
        memset(buffer.data(), 0, size);
        meet();
        ucp_request_param_t param{};
        worker.finish(ucp_get_nbx(worker.peer(), buffer.data(), size, peer_window, peer_key, &param));
        verify(buffer.data(), size, message(round, !first), "get");
        meet();
      }
  }

  void stream() {
    std::vector<unsigned char> out(options.most);
    for (const size_t size : sizes())
      for (unsigned round = 0; round < options.rounds && size; ++round) {
        fill(out.data(), size, message(round, first));
        ucp_request_param_t param{};
        void* sending = ucp_stream_send_nbx(worker.peer(), out.data(), size, &param);
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_STREAM_RECV_FLAG_WAITALL;
        size_t length = 0;
        void* receiving = ucp_stream_recv_nbx(worker.peer(), buffer.data(), size, &length, &param);
        worker.finish(receiving);
        worker.finish(sending);
        verify(buffer.data(), size, message(round, !first), "stream");
        meet();
      }
  }

  // Operations on the peer's counters, which the threads of both processes change at once.
  template <class Word>
  Word fetch(ucp_atomic_op_t operation, Word operand, unsigned slot, Word result = 0) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype = ucp_dt_make_contig(sizeof(Word));
    param.reply_buffer = &result;
    worker.finish(ucp_atomic_op_nbx(worker.peer(), operation, &operand, 1, peer_counters + 8 * slot, counters_key,
                                    &param));
    return result;
  }
  template <class Word>
  void post(ucp_atomic_op_t operation, Word operand, unsigned slot) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_contig(sizeof(Word));
    worker.finish(ucp_atomic_op_nbx(worker.peer(), operation, &operand, 1, peer_counters + 8 * slot, counters_key,
                                    &param));
  }
  static constexpr unsigned kOwn = 16;  // slots from here on are one thread's

  template <class Word>
  void alone(unsigned slot) {
    REQUIRE(fetch<Word>(UCP_ATOMIC_OP_SWAP, 5, slot) == 0);
    REQUIRE(fetch<Word>(UCP_ATOMIC_OP_ADD, static_cast<Word>(-7), slot) == 5);
    REQUIRE(fetch<Word>(UCP_ATOMIC_OP_SWAP, 40, slot) == static_cast<Word>(-2));
    REQUIRE(fetch<Word>(UCP_ATOMIC_OP_CSWAP, 41, slot, 1) == 40);   // compared in vain: the operand is not 40
    post<Word>(UCP_ATOMIC_OP_ADD, 2, slot);
    worker.flush();
    REQUIRE(fetch<Word>(UCP_ATOMIC_OP_ADD, 0, slot) >= 2);
  }

  void atomics() {
    const unsigned mine = kOwn + 2 * number, times = 200 * options.rounds;
    alone<uint64_t>(mine);
    alone<uint32_t>(mine + 1);
    // No two see the same count, and none is lost.
    std::set<uint64_t> seen;
    for (unsigned i = 0; i < times; ++i) {
      seen.insert(fetch<uint64_t>(UCP_ATOMIC_OP_ADD, 1, 0));
      post<uint64_t>(UCP_ATOMIC_OP_ADD, 3, 1);
      post<uint32_t>(UCP_ATOMIC_OP_ADD, 3, 2);
    }
    REQUIRE(seen.size() == times);
    // A lock made of compare and swap, guarding a counter that is read and written apart.
    for (unsigned i = 0; i < times / 20; ++i) {
      while (fetch<uint64_t>(UCP_ATOMIC_OP_CSWAP, 0, 3, number + 1) != 0) worker.progress();
      const uint64_t value = fetch<uint64_t>(UCP_ATOMIC_OP_ADD, 0, 4);
      fetch<uint64_t>(UCP_ATOMIC_OP_SWAP, value + 1, 4);
      REQUIRE(fetch<uint64_t>(UCP_ATOMIC_OP_SWAP, 0, 3) == number + 1);
    }
    meet();
  }
  // By one thread, when all are done.
  void check_counters() const {
    const uint64_t times = uint64_t{options.threads} * 200 * options.rounds;
    REQUIRE(counters[0] == times);
    REQUIRE(counters[1] == 3 * times);
    REQUIRE(static_cast<uint32_t>(counters[2]) == 3 * times);
    REQUIRE(counters[3] == 0);
    REQUIRE(counters[4] == times / 20);
  }
};

// ---- active messages: what arrives is kept by the number in its header ----

struct Arrived {
  std::vector<unsigned char> data;
  void* descriptor = nullptr;  // of data that is still to be fetched
  size_t length = 0;
  bool here = false;
};
struct Inbox {
  std::mutex lock;
  std::map<uint64_t, Arrived> messages;
};

ucs_status_t on_message(void* argument, const void* header, size_t header_length, void* data, size_t length,
                        const ucp_am_recv_param_t* param) {
  REQUIRE(header_length == sizeof(uint64_t));
  auto& inbox = *static_cast<Inbox*>(argument);
  uint64_t key;
  memcpy(&key, header, sizeof key);
  const std::lock_guard guard(inbox.lock);
  Arrived& arrived = inbox.messages[key];
  arrived.length = length;
  arrived.here = true;
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
    arrived.descriptor = data;
    return UCS_INPROGRESS;
  }
  arrived.data.assign(static_cast<unsigned char*>(data), static_cast<unsigned char*>(data) + length);
  return UCS_OK;
}

void active(Party& party, Inbox& inbox) {
  std::vector<unsigned char> out(party.options.most);
  const auto key_of = [&](size_t size, unsigned round) {
    return uint64_t{party.number} << 48 | uint64_t{round} << 40 | size;
  };
  for (const size_t size : party.sizes())
    for (unsigned round = 0; round < party.options.rounds; ++round) {
      fill(out.data(), size, party.message(round, party.first));
      uint64_t key = key_of(size, round);
      ucp_request_param_t param{};
      void* sending = ucp_am_send_nbx(party.worker.peer(), kActiveMessage, &key, sizeof key, out.data(), size, &param);
      Arrived arrived;
      while (!arrived.here) {
        party.worker.progress();
        const std::lock_guard guard(inbox.lock);
        if (const auto found = inbox.messages.find(key); found != inbox.messages.end()) {
          arrived = std::move(found->second);
          inbox.messages.erase(found);
        }
      }
      REQUIRE(arrived.length == size);
      if (arrived.descriptor) {
        arrived.data.resize(size);
        party.worker.finish(ucp_am_recv_data_nbx(party.worker.handle(), arrived.descriptor, arrived.data.data(), size,
                                                 &param));
      }
      party.worker.finish(sending);
      verify(arrived.data.data(), size, party.message(round, !party.first), "am");
      party.meet();
    }
}

// ---- the process ----

class Region {
 public:
  Region(ucp_context_h context, size_t length) : context_(context) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = length;
    params.flags = UCP_MEM_MAP_ALLOCATE;
    CHECK(ucp_mem_map(context, &params, &memory_));
    ucp_mem_attr_t attr{};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    CHECK(ucp_mem_query(memory_, &attr));
    at_ = static_cast<unsigned char*>(attr.address);
    memset(at_, 0, length);
  }
  ~Region() { ucp_mem_unmap(context_, memory_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  unsigned char* at() const { return at_; }
  std::string key() const {
    void* packed;
    size_t length;
    CHECK(ucp_rkey_pack(context_, memory_, &packed, &length));
    std::string bytes(static_cast<char*>(packed), length);
    ucp_rkey_buffer_release(packed);
    return bytes;
  }

 private:
  ucp_context_h context_;
  ucp_mem_h memory_;
  unsigned char* at_;
};

ucp_context_h make_context(const Options& options) {
  ucp_config_t* config;
  CHECK(ucp_config_read(nullptr, nullptr, &config));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 |
                    UCP_FEATURE_AMO64;
  params.mt_workers_shared = options.threads > 1;
  ucp_context_h context;
  CHECK(ucp_init(&params, config, &context));
  ucp_config_release(config);
  return context;
}

std::string text_of(uint64_t value) { return std::string(reinterpret_cast<char*>(&value), sizeof value); }
uint64_t value_of(const std::string& text) {
  uint64_t value;
  REQUIRE(text.size() == sizeof value);
  memcpy(&value, text.data(), sizeof value);
  return value;
}

void run_thread(Party& party, Inbox& inbox, std::barrier<>& together) {
  for (const std::string& test : party.options.tests) {
    party.meet();
    if (test == "tag") party.tagged();
    if (test == "am") active(party, inbox);
    if (test == "stream") party.stream();
    if (test == "put") party.put();
    if (test == "get") party.get();
    if (test == "atomics") party.atomics();
    together.arrive_and_wait();  // all threads of this process: the peer's operations on it are done
    if (test == "atomics" && party.number == 0) party.check_counters();
  }
  party.meet();
}

int run_process(const Options& options, Line line, bool first) {
  ucp_context_h context = make_context(options);
  {
    const Region window(context, options.most * options.threads), counters(context, 4096);
    const unsigned count = options.shared ? 1 : options.threads;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::unique_ptr<Inbox>> inboxes;
    for (unsigned i = 0; i < count; ++i) {
      workers.push_back(std::make_unique<Worker>(context, options.shared));
      inboxes.push_back(std::make_unique<Inbox>());
      ucp_am_handler_param_t handler{};
      handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
      handler.id = kActiveMessage;
      handler.cb = on_message;
      handler.arg = inboxes[i].get();
      CHECK(ucp_worker_set_am_recv_handler(workers[i]->handle(), &handler));
    }
    const std::string key = line.swap(window.key()), counters_key = line.swap(counters.key());
    const uint64_t peer_window = value_of(line.swap(text_of(reinterpret_cast<uintptr_t>(window.at()))));
    const uint64_t peer_counters = value_of(line.swap(text_of(reinterpret_cast<uintptr_t>(counters.at()))));
    std::vector<std::pair<ucp_rkey_h, ucp_rkey_h>> keys(count);
    for (unsigned i = 0; i < count; ++i) {
      workers[i]->connect(line.swap(workers[i]->address()));
      CHECK(ucp_ep_rkey_unpack(workers[i]->peer(), key.data(), &keys[i].first));
      CHECK(ucp_ep_rkey_unpack(workers[i]->peer(), counters_key.data(), &keys[i].second));
    }
    std::barrier together(options.threads);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options.threads; ++i)
      threads.emplace_back([&, i] {
        const unsigned w = options.shared ? 0 : i;
        Party party{.options = options,
                    .worker = *workers[w],
                    .number = i,
                    .first = first,
                    .window = window.at() + i * options.most,
                    .peer_window = peer_window + i * options.most,
                    .peer_key = keys[w].first,
                    .counters = reinterpret_cast<uint64_t*>(counters.at()),
                    .peer_counters = peer_counters,
                    .counters_key = keys[w].second};
        run_thread(party, *inboxes[w], together);
      });
    for (std::thread& thread : threads) thread.join();
    for (auto& [a, b] : keys) {
      ucp_rkey_destroy(a);
      ucp_rkey_destroy(b);
    }
    for (auto& worker : workers) worker->disconnect();
    line.swap("disconnected");
  }
  ucp_cleanup(context);
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&] { return ++i < argc ? strtoul(argv[i], nullptr, 0) : 0; };
    if (word == "--threads") options.threads = static_cast<unsigned>(number());
    else if (word == "--shared") options.shared = true;
    else if (word == "--most") options.most = number();
    else if (word == "--rounds") options.rounds = static_cast<unsigned>(number());
    else options.tests.push_back(word);
  }
  REQUIRE(options.threads >= 1 && options.most >= 8 && !options.tests.empty());
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pid_t child = fork();
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(ends[child == 0 ? 0 : 1]);
  const int result = run_process(options, Line(ends[child == 0 ? 1 : 0]), child != 0);
  if (child == 0) return result;
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (status != 0) return 1;
  printf("good\n");
  return 0;
}
