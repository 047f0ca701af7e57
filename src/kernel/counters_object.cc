#include "kernel/counters_object.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/memory/guard.h"
#include "kernel/command.h"
#include "kernel/method.h"
#include "prm/flow.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kMaxPoints = 0xffff / 8, kLastDescription = 1;

int read_points(const mlx5_ib_flow_counters_data& data, std::vector<Counters::Point>* points) {
  if (data.ncounters > kMaxPoints) return EINVAL;
  points->resize(data.ncounters);
  static_assert(sizeof(Counters::Point) == sizeof(mlx5_ib_flow_counters_desc));
  if (device::guarded_read(points->data(), reinterpret_cast<const void*>(data.counters_data),
                           points->size() * sizeof(Counters::Point)) != 0)
    return EFAULT;
  const bool known = std::ranges::all_of(*points, [](const auto& p) { return p.description <= kLastDescription && p.index < kMaxPoints; });
  return known ? 0 : EINVAL;
}

int make_counter(File& file, Counters& counters) {
  if (counters.number) return 0;
  Command<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut> command(prm::Opcode::alloc_flow_counter);
  if (int error = command.run(file.device())) return error;
  counters.number = command.out().get<prm::AllocFlowCounterOut::flow_counter_id>();
  return 0;
}

int query(File& file, const Counters& counters, std::uint64_t (&values)[2]) {
  using In = prm::QueryFlowCounterIn;
  using Count = prm::TrafficCounter;
  Command<In, prm::CommandOut> command(prm::Opcode::query_flow_counter);
  command.in().set<In::num_of_counters>(0).set<In::flow_counter_id>(counters.number);
  prm::Box<prm::QueryFlowCounterOut, Count::size> out;
  std::span<const std::byte> in(command.in().data(), In::size);
  if (int error = run(file.device(), in, out.span())) return error;
  const auto count = std::as_const(out).view().at<prm::QueryFlowCounterOut::flow_statistics>(0);
  values[0] = count.get<Count::packets>();
  values[1] = count.get<Count::octets>();
  return 0;
}

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, AttrAccess::create)};

int native_create(File& file, Request& request) {
  request.set_id(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, file.objects().add(std::make_unique<Counters>()));
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, AttrAccess::destroy)};

constexpr AttrSpec kReadAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_READ_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, AttrAccess::read),
    uverbs::out_attr(UVERBS_ATTR_READ_COUNTERS_BUFF, 8, true, false),
    uverbs::flags_attr(UVERBS_ATTR_READ_COUNTERS_FLAGS, true),
};

int native_read(File& file, Request& request) {
  int error = 0;
  const Counters* counters = file.find<Counters>(request.handle(UVERBS_ATTR_READ_COUNTERS_HANDLE), UVERBS_OBJECT_COUNTERS, &error);
  if (!counters) return error;
  if (!counters->users) return EINVAL;  // no flow counts
  std::uint32_t flags = 0;
  if ((error = request.flags(UVERBS_ATTR_READ_COUNTERS_FLAGS, IB_UVERBS_READ_COUNTERS_PREFER_CACHED, &flags))) return error;
  std::vector<std::uint64_t> buffer(std::min<std::size_t>(request.out_length(UVERBS_ATTR_READ_COUNTERS_BUFF) / 8, kMaxPoints));
  if (counters->end > buffer.size()) return EINVAL;
  std::uint64_t values[2];
  if ((error = query(file, *counters, values))) return error;
  for (const Counters::Point& point : counters->points) buffer[point.index] += values[point.description];
  return request.write(UVERBS_ATTR_READ_COUNTERS_BUFF, buffer.data(), buffer.size() * 8);
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, kCreateAttrs, true}, native_create},
    {{UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_COUNTERS, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE>},
    {{UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, kReadAttrs}, native_read},
};

}  // namespace

int Counters::destroy(File& file) {
  if (!number) return 0;
  Command<prm::DeallocFlowCounterIn, prm::DeallocFlowCounterOut> command(prm::Opcode::dealloc_flow_counter);
  command.in().set<prm::DeallocFlowCounterIn::flow_counter_id>(number);
  return command.run(file.device());
}

int bind_counters(File& file, Counters& counters, const uverbs::Udata& driver) {
  mlx5_ib_create_flow head{};
  if (driver.in.size() >= sizeof head) std::memcpy(&head, driver.in.data(), sizeof head);
  std::vector<Counters::Point> points;
  if (head.ncounters_data) {
    // The list stands behind the head.
    mlx5_ib_flow_counters_data data{};
    const auto list = driver.in.subspan(sizeof head);
    if (list.size() < sizeof data) return EINVAL;
    std::memcpy(&data, list.data(), sizeof data);
    if (int error = read_points(data, &points)) return error;
    if (counters.end) return EINVAL;  // it is bound already
  } else if (!counters.end) {
    return EINVAL;  // nobody said what to count
  }
  if (int error = make_counter(file, counters)) return error;
  if (!head.ncounters_data) return 0;
  for (const Counters::Point& point : points) counters.end = std::max(counters.end, point.index + 1);
  counters.points = std::move(points);
  return 0;
}

void unbind_counters(Counters& counters) {
  if (counters.users != 0) return;
  counters.points.clear();
  counters.end = 0;
}

std::span<const Method> counters_methods() { return kMethods; }

}  // namespace verbena::kernel
