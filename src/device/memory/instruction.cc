#include "device/memory/instruction.h"

namespace verbena::device {

namespace {

using Register = MemoryAccess::Register;
using Action = MemoryAccess::Action;

// Reads an instruction byte by byte; past the end it reads zeros and says so.
class Code {
 public:
  explicit Code(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t peek() const { return at_ < bytes_.size() ? bytes_[at_] : 0; }
  std::uint8_t next() {
    const std::uint8_t byte = peek();
    ++at_;
    return byte;
  }
  void skip(std::size_t n) { at_ += n; }
  std::uint64_t immediate(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{next()} << (8 * i);
    return bytes == 4 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(value)) : value;
  }
  bool whole() const { return at_ <= bytes_.size(); }
  std::size_t length() const { return at_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

struct Prefixes {
  bool operand16 = false, f2 = false, f3 = false, rex = false, vex = false;
  bool w = false, r = false, wide_vector = false;
  std::uint8_t map = 0;  // 0: one-byte opcodes, 1: those behind 0f, 2: behind 0f 38
};

std::optional<Prefixes> read_prefixes(Code& code) {
  Prefixes p;
  for (bool more = true; more;) {
    switch (code.peek()) {
      case 0x66: p.operand16 = true; break;
      case 0xf2: p.f2 = true; break;
      case 0xf3: p.f3 = true; break;
      case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x67: break;
      default: more = false;
    }
    if (more) code.skip(1);
    if (code.length() > 14) return std::nullopt;
  }
  if ((code.peek() & 0xf0) == 0x40) {
    const std::uint8_t rex = code.next();
    p.rex = true;
    p.w = rex & 8;
    p.r = rex & 4;
  } else if (code.peek() == 0xc5 || code.peek() == 0xc4) {
    const bool three = code.next() == 0xc4;
    std::uint8_t byte = code.next();
    p.vex = true;
    p.r = !(byte & 0x80);
    p.map = three ? byte & 0x1f : 1;
    if (three) {
      byte = code.next();
      p.w = byte & 0x80;
    }
    p.wide_vector = byte & 4;
    p.operand16 = (byte & 3) == 1;
    p.f3 = (byte & 3) == 2;
    p.f2 = (byte & 3) == 3;
    if (p.map != 1) return std::nullopt;
    return p;
  }
  if (code.peek() == 0x0f) {
    code.skip(1);
    p.map = 1;
    if (code.peek() == 0x38) {
      code.skip(1);
      p.map = 2;
    }
  }
  return p;
}

// Passes over ModRM and what belongs to it. Returns its register field, or nothing if the operand is no memory.
std::optional<std::uint8_t> read_operand(Code& code, const Prefixes& p) {
  const std::uint8_t modrm = code.next();
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  if (mod == 3) return std::nullopt;
  bool disp32 = mod == 2 || (mod == 0 && rm == 5);
  if (rm == 4) {
    const std::uint8_t sib = code.next();
    if (mod == 0 && (sib & 7) == 5) disp32 = true;
  }
  code.skip(disp32 ? 4 : mod == 1 ? 1 : 0);
  return static_cast<std::uint8_t>((modrm >> 3 & 7) | (p.r ? 8 : 0));
}

std::uint8_t operand_bytes(const Prefixes& p) { return p.w ? 8 : p.operand16 ? 2 : 4; }

void byte_register(const Prefixes& p, MemoryAccess& access) {
  if (p.rex || access.number < 4) return;
  access.kind = Register::high_byte;
  access.number = static_cast<std::uint8_t>(access.number - 4);
}

// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP of a register with memory; CMP and TEST of memory with a register or immediate.
std::optional<MemoryAccess> arithmetic(std::uint8_t opcode, std::uint8_t reg, Code& code, const Prefixes& p) {
  const bool wide = opcode & 1;
  MemoryAccess access{.number = reg};
  access.bytes = access.width = wide ? operand_bytes(p) : 1;
  const unsigned immediate_bytes = opcode == 0x83 || !wide ? 1 : access.bytes == 8 ? 4 : access.bytes;
  const auto with_immediate = [&](Action action) {
    access.action = action;
    access.memory_first = true;
    access.kind = Register::immediate;
    access.immediate = code.immediate(immediate_bytes);
    if (immediate_bytes == 1) access.immediate = static_cast<std::uint64_t>(static_cast<std::int8_t>(access.immediate));
    return access;
  };
  if (opcode < 0x40 && (opcode & 6) == 2) {
    access.action = static_cast<Action>(opcode >> 3);
  } else if (opcode == 0x38 || opcode == 0x39 || opcode == 0x84 || opcode == 0x85) {
    access.action = opcode < 0x40 ? Action::cmp : Action::test;
    access.memory_first = true;
  } else if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) {
    return (reg & 7) == 7 ? std::optional(with_immediate(Action::cmp)) : std::nullopt;
  } else if (opcode == 0xf6 || opcode == 0xf7) {
    return (reg & 7) < 2 ? std::optional(with_immediate(Action::test)) : std::nullopt;
  } else {
    return std::nullopt;
  }
  if (!wide) byte_register(p, access);
  return access;
}

std::optional<MemoryAccess> one_byte_opcode(std::uint8_t opcode, Code& code, const Prefixes& p) {
  const auto reg = read_operand(code, p);
  if (!reg) return std::nullopt;
  MemoryAccess access{.number = *reg};
  const std::uint8_t bytes = opcode & 1 ? operand_bytes(p) : 1;
  access.bytes = access.width = bytes;
  switch (opcode) {
    case 0x88: case 0x89:  // MOV to memory
      access.store = true;
      if (bytes == 1) byte_register(p, access);
      return access;
    case 0x8a: case 0x8b:  // MOV from memory
      if (bytes == 1) byte_register(p, access);
      return access;
    case 0xc6: case 0xc7:  // MOV of an immediate
      if (*reg & 7) return std::nullopt;
      access.store = true;
      access.kind = Register::immediate;
      access.immediate = code.immediate(bytes == 8 ? 4 : bytes);
      return access;
    case 0x63:  // MOVSXD
      access.bytes = 4;
      access.width = operand_bytes(p);
      access.sign_extend = true;
      return access;
    default:
      return arithmetic(opcode, *reg, code, p);
  }
}

std::optional<MemoryAccess> extending_load(std::uint8_t opcode, Code& code, const Prefixes& p) {
  const auto reg = read_operand(code, p);
  if (!reg) return std::nullopt;
  return MemoryAccess{.bytes = static_cast<std::uint8_t>(opcode & 1 ? 2 : 1),
                      .number = *reg,
                      .width = operand_bytes(p),
                      .sign_extend = opcode >= 0xbe};
}

// MOVSS, MOVSD, MOVD, MOVQ, MOVLPS as a store, with and without VEX; MOVNTI.
std::optional<MemoryAccess> vector_opcode(std::uint8_t opcode, Code& code, const Prefixes& p) {
  const auto reg = read_operand(code, p);
  if (!reg || p.wide_vector) return std::nullopt;
  MemoryAccess access{.kind = Register::vector, .number = *reg, .vex = p.vex};
  switch (opcode) {
    case 0x10: case 0x11:
      if (!p.f2 && !p.f3) return std::nullopt;
      access.bytes = p.f2 ? 8 : 4;
      access.store = opcode == 0x11;
      return access;
    case 0x13:
      access.bytes = 8;
      access.store = true;
      return access;
    case 0x6e:
      if (!p.operand16) return std::nullopt;
      access.bytes = p.w ? 8 : 4;
      return access;
    case 0x7e:
      if (p.operand16 == p.f3) return std::nullopt;
      access.bytes = p.f3 || p.w ? 8 : 4;
      access.store = p.operand16;
      return access;
    case 0xd6:
      if (!p.operand16) return std::nullopt;
      access.bytes = 8;
      access.store = true;
      return access;
    case 0xc3:
      if (p.vex || p.operand16 || p.f2 || p.f3) return std::nullopt;
      access.kind = Register::general;
      access.bytes = operand_bytes(p);
      access.store = true;
      return access;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<MemoryAccess> decode_access(std::span<const std::uint8_t> bytes) {
  Code code(bytes);
  const auto prefixes = read_prefixes(code);
  if (!prefixes || prefixes->map == 2) return std::nullopt;
  const std::uint8_t opcode = code.next();
  const bool extends = prefixes->map == 1 && !prefixes->vex && (opcode & 0xf6) == 0xb6;
  auto access = prefixes->map == 0 ? one_byte_opcode(opcode, code, *prefixes)
                : extends          ? extending_load(opcode, code, *prefixes)
                                   : vector_opcode(opcode, code, *prefixes);
  if (!access || !code.whole() || code.length() > 15) return std::nullopt;
  access->length = static_cast<std::uint8_t>(code.length());
  return access;
}

Computed compute(const MemoryAccess& access, std::uint64_t from_memory, std::uint64_t other, std::uint64_t flags) {
  constexpr std::uint64_t carry = 1, parity = 4, adjust = 0x10, zero = 0x40, sign = 0x80, overflow = 0x800;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * access.bytes), top = mask ^ mask >> 1;
  const std::uint64_t left = (access.memory_first ? from_memory : other) & mask;
  const std::uint64_t right = (access.memory_first ? other : from_memory) & mask;
  const std::uint64_t in = (access.action == Action::adc || access.action == Action::sbb) && flags & carry ? 1 : 0;
  std::uint64_t value = 0, out = 0;
  switch (access.action) {
    case Action::add: case Action::adc:
      value = (left + right + in) & mask;
      out |= value < left || (in && value == left) ? carry : 0;
      out |= (left ^ value) & (right ^ value) & top ? overflow : 0;
      out |= (left ^ right ^ value) & adjust;
      break;
    case Action::sub: case Action::sbb: case Action::cmp:
      value = (left - right - in) & mask;
      out |= left < right || (in && left == right) ? carry : 0;
      out |= (left ^ right) & (left ^ value) & top ? overflow : 0;
      out |= (left ^ right ^ value) & adjust;
      break;
    case Action::or_: value = left | right; break;
    case Action::xor_: value = left ^ right; break;
    case Action::and_: case Action::test: value = left & right; break;
    case Action::move: return {from_memory, flags};
  }
  out |= value == 0 ? zero : 0;
  out |= value & top ? sign : 0;
  out |= __builtin_parityll(value & 0xff) ? 0 : parity;
  return {value, (flags & ~(carry | parity | adjust | zero | sign | overflow)) | out};
}

std::uint64_t loaded(const MemoryAccess& access, std::uint64_t before, std::uint64_t value) {
  if (access.kind == Register::high_byte) return (before & ~std::uint64_t{0xff00}) | (value & 0xff) << 8;
  if (access.sign_extend) {
    const unsigned unused = 64 - 8 * access.bytes;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }
  switch (access.width) {
    case 1: return (before & ~std::uint64_t{0xff}) | (value & 0xff);
    case 2: return (before & ~std::uint64_t{0xffff}) | (value & 0xffff);
    case 4: return value & 0xffffffff;
    default: return value;
  }
}

}  // namespace verbena::device
