// Objects of verbs and mlx5 direct verbs that give themselves back. Made by their constructors, which throw Error;
// moved, not copied; destroyed in any order that the objects allow (a queue pair before its completion queue).
//
// A destructor is silent. Where it matters whether the object went (one that is in use stays), call close(), which
// throws. get() is the C object, for every call that is not here.
//
// Threads: as of the C objects: any, but not while one thread destroys or moves.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "command.h"

namespace verbena {

namespace detail {

template <class T>
T* must(T* object, const char* call) {
  if (!object) throw Error(call, errno);
  return object;
}
inline void must(int error, const char* call) {
  if (error) throw Error(call, error);
}

// `Destroy` is how the object goes: returns an errno, or nothing.
template <class T, auto Destroy>
class Handle {
 public:
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      drop();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Handle() { drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* release() { return std::exchange(object_, nullptr); }
  // Destroys it now. Throws, and keeps the object, if it cannot go.
  void close() {
    if (!object_) return;
    must(destroy(), "destroy");
    object_ = nullptr;
  }

 protected:
  explicit Handle(T* object) : object_(object) {}

 private:
  int destroy() {
    if constexpr (std::is_void_v<decltype(Destroy(object_))>) {
      Destroy(object_);
      return 0;
    } else {
      const int result = Destroy(object_);
      return result < 0 ? errno : result;
    }
  }
  void drop() {
    if (object_) destroy();
  }
  T* object_;
};

}  // namespace detail

// An open device.
class Context : public detail::Handle<ibv_context, ibv_close_device> {
 public:
  // By name (mlx5_0), or the first mlx5 device there is. The flags are MLX5DV_CONTEXT_FLAGS_*.
  explicit Context(std::string_view name = {}, std::uint32_t flags = MLX5DV_CONTEXT_FLAGS_DEVX)
      : Handle(open(name, flags)) {}

  // A command about the device as a whole.
  template <class In>
  requires GoesBy<In, Door::general> Reply<In> general(const Command<In>& command, std::size_t tail = 0)
  const {
    Reply<In> reply(tail);
    detail::check<In>(mlx5dv_devx_general_cmd(get(), command.data(), command.size(), reply.data(), reply.size()),
                      reply);
    return reply;
  }
  // The event queue of a completion vector.
  std::uint32_t eqn(std::uint32_t vector = 0) const {
    std::uint32_t eqn = 0;
    detail::must(mlx5dv_devx_query_eqn(get(), vector, &eqn), "mlx5dv_devx_query_eqn");
    return eqn;
  }

 private:
  static ibv_context* open(std::string_view name, std::uint32_t flags) {
    ibv_device** list = detail::must(ibv_get_device_list(nullptr), "ibv_get_device_list");
    ibv_context* context = nullptr;
    errno = ENODEV;
    for (ibv_device** device = list; *device; ++device) {
      if (!mlx5dv_is_supported(*device) || (!name.empty() && name != ibv_get_device_name(*device))) continue;
      mlx5dv_context_attr attr{};
      attr.flags = flags;
      context = mlx5dv_open_device(*device, &attr);
      break;
    }
    const int error = errno;
    ibv_free_device_list(list);
    errno = error;
    return detail::must(context, "mlx5dv_open_device");
  }
};

// A protection domain.
class Pd : public detail::Handle<ibv_pd, ibv_dealloc_pd> {
 public:
  explicit Pd(const Context& context) : Handle(detail::must(ibv_alloc_pd(context.get()), "ibv_alloc_pd")) {}
  // Its number, as commands want it.
  std::uint32_t number() const {
    mlx5dv_pd out{};
    mlx5dv_obj object{};
    object.pd.in = get();
    object.pd.out = &out;
    detail::must(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), "mlx5dv_init_obj");
    return out.pdn;
  }
};

// A memory region.
class Mr : public detail::Handle<ibv_mr, ibv_dereg_mr> {
 public:
  Mr(const Pd& pd, void* address, std::size_t length, unsigned access)
      : Handle(detail::must(ibv_reg_mr(pd.get(), address, length, access), "ibv_reg_mr")) {}
};

// A completion queue.
class Cq : public detail::Handle<ibv_cq, ibv_destroy_cq> {
 public:
  Cq(const Context& context, int entries, ibv_comp_channel* channel = nullptr, int vector = 0, void* cookie = nullptr)
      : Handle(detail::must(ibv_create_cq(context.get(), entries, cookie, channel, vector), "ibv_create_cq")) {}

  template <class In>
  requires GoesBy<In, Door::query> Reply<In> query(const Command<In>& command, std::size_t tail = 0)
  const {
    Reply<In> reply(tail);
    detail::check<In>(mlx5dv_devx_cq_query(get(), command.data(), command.size(), reply.data(), reply.size()), reply);
    return reply;
  }
  template <class In>
  requires GoesBy<In, Door::modify> Reply<In> modify(const Command<In>& command)
  const {
    Reply<In> reply;
    detail::check<In>(mlx5dv_devx_cq_modify(get(), command.data(), command.size(), reply.data(), reply.size()), reply);
    return reply;
  }
};

// A queue pair.
class Qp : public detail::Handle<ibv_qp, ibv_destroy_qp> {
 public:
  Qp(const Pd& pd, ibv_qp_init_attr attr) : Handle(detail::must(ibv_create_qp(pd.get(), &attr), "ibv_create_qp")) {}
  // With what direct verbs add; `attr.pd` is given by the caller.
  Qp(const Context& context, ibv_qp_init_attr_ex attr, mlx5dv_qp_init_attr direct)
      : Handle(detail::must(mlx5dv_create_qp(context.get(), &attr, &direct), "mlx5dv_create_qp")) {}

  std::uint32_t number() const { return get()->qp_num; }
  void modify(ibv_qp_attr attr, int mask) { detail::must(ibv_modify_qp(get(), &attr, mask), "ibv_modify_qp"); }

  // Commands on this queue pair; its number is filled in.
  template <class In>
  requires GoesBy<In, Door::query> Reply<In> query(Command<In> command, std::size_t tail = 0)
  const {
    Reply<In> reply(tail);
    command.template set<typename In::qpn>(number());
    detail::check<In>(mlx5dv_devx_qp_query(get(), command.data(), command.size(), reply.data(), reply.size()), reply);
    return reply;
  }
  template <class In>
  requires GoesBy<In, Door::modify> Reply<In> modify(Command<In> command) {
    Reply<In> reply;
    command.template set<typename In::qpn>(number());
    detail::check<In>(mlx5dv_devx_qp_modify(get(), command.data(), command.size(), reply.data(), reply.size()), reply);
    return reply;
  }

  void set_udp_sport(std::uint16_t port) {
    detail::must(mlx5dv_modify_qp_udp_sport(get(), port), "mlx5dv_modify_qp_udp_sport");
  }
  void set_lag_port(std::uint8_t port) {
    detail::must(mlx5dv_modify_qp_lag_port(get(), port), "mlx5dv_modify_qp_lag_port");
  }
  struct LagPort {
    std::uint8_t configured;  // the port it was given
    std::uint8_t active;      // the port that does its work now
  };
  LagPort lag_port() const {
    LagPort port{};
    detail::must(mlx5dv_query_qp_lag_port(get(), &port.configured, &port.active), "mlx5dv_query_qp_lag_port");
    return port;
  }
};

// Memory of the program that queues made by command may lie in.
class Umem : public detail::Handle<mlx5dv_devx_umem, mlx5dv_devx_umem_dereg> {
 public:
  Umem(const Context& context, void* address, std::size_t length, std::uint32_t access = IBV_ACCESS_LOCAL_WRITE)
      : Handle(detail::must(mlx5dv_devx_umem_reg(context.get(), address, length, access), "mlx5dv_devx_umem_reg")) {}
  std::uint32_t id() const { return get()->umem_id; }
};

// A doorbell page.
class Uar : public detail::Handle<mlx5dv_devx_uar, mlx5dv_devx_free_uar> {
 public:
  explicit Uar(const Context& context, std::uint32_t type = MLX5DV_UAR_ALLOC_TYPE_BF)
      : Handle(detail::must(mlx5dv_devx_alloc_uar(context.get(), type), "mlx5dv_devx_alloc_uar")) {}
  std::uint32_t page() const { return get()->page_id; }
  // Rings the send doorbell with the first eight bytes of a work request, after everything written before.
  void ring(const void* wqe) const {
    std::uint64_t head;
    std::memcpy(&head, wqe, sizeof head);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *static_cast<volatile std::uint64_t*>(get()->reg_addr) = head;
  }
};

// An object made by a command, and its reply, which has the object's number.
template <class In>
class Object : public detail::Handle<mlx5dv_devx_obj, mlx5dv_devx_obj_destroy> {
 public:
  Object(const Context& context, const Command<In>& command) requires GoesBy<In, Door::create>
      : Object(context, command, Reply<In>()) {}

  const Reply<In>& reply() const { return reply_; }

  template <class Query>
  requires GoesBy<Query, Door::query> Reply<Query> query(const Command<Query>& command, std::size_t tail = 0)
  const {
    Reply<Query> out(tail);
    detail::check<Query>(mlx5dv_devx_obj_query(get(), command.data(), command.size(), out.data(), out.size()), out);
    return out;
  }
  template <class Modify>
  requires GoesBy<Modify, Door::modify> Reply<Modify> modify(const Command<Modify>& command) {
    Reply<Modify> out;
    detail::check<Modify>(mlx5dv_devx_obj_modify(get(), command.data(), command.size(), out.data(), out.size()), out);
    return out;
  }

 private:
  Object(const Context& context, const Command<In>& command, Reply<In> reply)
      : Handle(create(context, command, reply)), reply_(std::move(reply)) {}
  static mlx5dv_devx_obj* create(const Context& context, const Command<In>& command, Reply<In>& reply) {
    mlx5dv_devx_obj* object =
        mlx5dv_devx_obj_create(context.get(), command.data(), command.size(), reply.data(), reply.size());
    if (!object) detail::check<In>(errno, reply);
    return object;
  }
  Reply<In> reply_;
};

// Where events of the device arrive: get()->fd becomes readable.
class EventChannel : public detail::Handle<mlx5dv_devx_event_channel, mlx5dv_devx_destroy_event_channel> {
 public:
  struct Event {
    std::uint64_t cookie = 0;
    std::array<std::byte, 64> entry{};  // as the device wrote it (prm::Eqe); zeros if the channel leaves it out
  };

  explicit EventChannel(const Context& context, bool omit_data = false)
      : Handle(detail::must(mlx5dv_devx_create_event_channel(
                                context.get(), omit_data ? MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA
                                                         : static_cast<mlx5dv_devx_create_event_channel_flags>(0)),
                            "mlx5dv_devx_create_event_channel")) {}

  // Of an object, or with none of the device.
  template <class In>
  void subscribe(const Object<In>& object, std::span<const std::uint16_t> events, std::uint64_t cookie) {
    subscribe(object.get(), events, cookie);
  }
  void subscribe(std::span<const std::uint16_t> events, std::uint64_t cookie) { subscribe(nullptr, events, cookie); }

  // Takes one event; sleeps until there is one unless the descriptor was made non-blocking.
  Event next() {
    Event event;
    const auto got = mlx5dv_devx_get_event(get(), reinterpret_cast<mlx5dv_devx_async_event_hdr*>(&event), sizeof event);
    if (got < 0) throw Error("mlx5dv_devx_get_event", errno);
    return event;
  }

 private:
  void subscribe(mlx5dv_devx_obj* object, std::span<const std::uint16_t> events, std::uint64_t cookie) {
    std::vector<std::uint16_t> numbers(events.begin(), events.end());
    detail::must(
        mlx5dv_devx_subscribe_devx_event(
            get(), object, static_cast<std::uint16_t>(numbers.size() * sizeof(std::uint16_t)), numbers.data(), cookie),
        "mlx5dv_devx_subscribe_devx_event");
  }
};

}  // namespace verbena
