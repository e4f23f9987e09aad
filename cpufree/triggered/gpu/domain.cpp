#include "cpufree/triggered/gpu/domain.hpp"

#include <chrono>

#include "cpufree/triggered/buffer_room.hpp"
#include "cpufree/triggered/gpu/rig.hpp"

namespace cpufree::triggered {

namespace {

constexpr int kThreads = 128;

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

}  // namespace

// All memory is there before the NICs are: while a block is the NIC, nothing may be allocated.
struct GpuDomain::Machine {
  GpuRig rig;
  Symmetric<std::byte> buffers;
  BufferRoom room;
  std::vector<gpu::DeviceArray<Step>> steps;
  std::vector<gpu::DeviceArray<std::int64_t>> first;
  std::vector<gpu::DeviceArray<double>> values;
  std::vector<gpu::DeviceArray<Epoch>> taken;
  std::vector<gpu::DeviceArray<TriggerTag>> arrivals;
  const void* kernel = nullptr;

  Machine(const DomainConfig& config, const std::vector<int>& devices, const std::string& back_end)
      : rig(devices, config.sizes, config.wait_limit),
        buffers(rig.layout.reserve<std::byte>(config.bytes)),
        room(buffers.offset, config.bytes) {
    rig.options.times = config.times;
    rig.allocate();
    for (const int device : devices) {
      steps.emplace_back(device, kMostSteps);
      first.emplace_back(device, at(config.sizes.blocks) + 1);
      values.emplace_back(device, kMostValues);
      taken.emplace_back(device, devices.size());
      arrivals.emplace_back(device, kMostSteps);
    }
    kernel = steps_kernel(GpuRig::counts_by_words(back_end));
    rig.prepare(kernel, grid(config), back_end);
    rig.make_nics(back_end);
  }
  static gpu::Grid grid(const DomainConfig& config) { return {config.sizes.blocks, kThreads, 0}; }
};

GpuDomain::GpuDomain(const DomainConfig& config, const std::vector<int>& devices,
                     const std::string& back_end)
    : config_(config) {
  check(config.sizes);
  require(static_cast<int>(devices.size()) == config.sizes.pes,
          "a domain on GPUs names one for each of its " + std::to_string(config.sizes.pes) +
              " PEs, not " + std::to_string(devices.size()));
  machine_ = std::make_unique<Machine>(config, devices, back_end);
}

// The NICs end before anything is freed, which would wait for them.
GpuDomain::~GpuDomain() { machine_->rig.nics.reset(); }

std::uint64_t GpuDomain::add_buffer(const std::string& name, std::uint64_t bytes) {
  const std::uint64_t offset = machine_->room.find(name, bytes);
  machine_->rig.nics->add_buffer(name, offset, bytes);
  const bool used = machine_->room.used_before(offset);
  machine_->room.take(name, offset, bytes);
  const std::vector<double> zeros(used ? bytes / sizeof(double) : 0);
  for (int pe = 0; pe < config_.sizes.pes; ++pe) write(pe, offset, zeros.data(), zeros.size());
  return offset;
}

void GpuDomain::remove_buffer(const std::string& name) {
  machine_->rig.nics->remove_buffer(name);
  machine_->room.give_back(name);
}

std::vector<std::uint8_t> GpuDomain::read(int pe, std::uint64_t offset, std::size_t bytes) const {
  require(pe >= 0 && pe < config_.sizes.pes, "there is no PE " + std::to_string(pe));
  std::vector<std::uint8_t> values(bytes);
  if (bytes > 0) gpu::copy_to_host(values.data(), machine_->rig.pes.heap(pe) + offset, bytes);
  return values;
}

void GpuDomain::write(int pe, std::uint64_t offset, const double* values, std::size_t count) {
  require(pe >= 0 && pe < config_.sizes.pes, "there is no PE " + std::to_string(pe));
  if (count > 0)
    gpu::copy_to_device(machine_->rig.pes.device(pe), machine_->rig.pes.heap(pe) + offset, values,
                        count * sizeof(double));
}

void GpuDomain::post(int pe, const TriggerOperation& operation) {
  machine_->rig.nics->post(pe, operation);
}

void GpuDomain::upload(const Program& program) {
  require(program.values.size() <= kMostValues,
          "a program on GPUs stores at most " + std::to_string(kMostValues) + " values");
  Machine& m = *machine_;
  for (int pe = 0; pe < config_.sizes.pes; ++pe) {
    std::vector<Step> steps;
    std::vector<std::int64_t> first{0};
    for (int block = 0; block < config_.sizes.blocks; ++block) {
      const auto& own = program.blocks[at(pe * config_.sizes.blocks + block)];
      steps.insert(steps.end(), own.begin(), own.end());
      first.push_back(static_cast<std::int64_t>(steps.size()));
    }
    require(steps.size() <= kMostSteps,
            "a program on GPUs has at most " + std::to_string(kMostSteps) + " steps a PE");
    for (const Step& step : steps)
      if (step.kind == Step::Kind::trigger && step.pe != pe && !m.rig.nics->reached_by_all())
        throw Unsupported(
            "a proxy is triggered by its own PE alone: use the back end block, or "
            "copy_engine, to trigger at NICs of other PEs");
    for (const Step& step : steps)
      if (step.kind == Step::Kind::trigger && step.fields.given != 0U && m.rig.counts())
        throw Unsupported("dynamic triggers need the back end block or proxy");
    const int device = m.rig.pes.device(pe);
    gpu::copy_to_device(device, m.steps[at(pe)].data(), steps.data(), steps.size() * sizeof(Step));
    m.first[at(pe)].rewrite(device, first);
    gpu::copy_to_device(device, m.values[at(pe)].data(), program.values.data(),
                        program.values.size() * sizeof(double));
  }
}

std::vector<std::vector<TriggerTag>> GpuDomain::arrivals_of(const Program& program) const {
  std::vector<std::vector<TriggerTag>> all(program.blocks.size());
  for (int pe = 0; pe < config_.sizes.pes; ++pe) {
    const auto found = machine_->arrivals[at(pe)].download();
    std::size_t step = 0;
    for (int block = 0; block < config_.sizes.blocks; ++block) {
      const auto k = at(pe * config_.sizes.blocks + block);
      for (const Step& one : program.blocks[k]) {
        if (one.kind == Step::Kind::next_arrival) all[k].push_back(found[step]);
        ++step;
      }
    }
  }
  return all;
}

std::vector<LostWait> GpuDomain::lost_waits() const {
  std::vector<LostWait> waits;
  for (int pe = 0; pe < config_.sizes.pes; ++pe)
    for (int block = 0; block < config_.sizes.blocks; ++block) {
      const WaitRecord& record = machine_->rig.pes.record(pe, block);
      if (record.waited()) waits.push_back({pe, block, record});
    }
  return waits;
}

Outcome GpuDomain::run(const Program& program, const std::function<void()>& look) {
  require(!closed_, "the domain is closed: its NICs have ended");
  check(program, config_, *machine_->rig.nics);
  upload(program);
  Machine& m = *machine_;
  const auto start = std::chrono::steady_clock::now();
  for (int pe = 0; pe < config_.sizes.pes; ++pe) {
    const auto k = at(pe);
    const StepsArgs args{m.rig.verbs(pe),    m.steps[k].data(), m.first[k].data(),
                         m.values[k].data(), m.taken[k].data(), m.arrivals[k].data()};
    m.rig.pes.launch(pe, m.kernel, Machine::grid(config_), &args);
    m.rig.nics->launched(pe, m.rig.pes.stream(pe));
  }
  Outcome outcome;
  const bool good = m.rig.pes.wait(look);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (good) {
    outcome.arrivals = arrivals_of(program);
  } else {
    outcome.waits = lost_waits();
    outcome.report = close();
  }
  return outcome;
}

const nics::NicReport& GpuDomain::close() {
  if (!closed_) {
    closed_ = true;
    report_ = machine_->rig.nics->stop();
  }
  return report_;
}

const std::vector<nics::Firing>& GpuDomain::firings(int pe) const {
  return machine_->rig.nics->firings(pe);
}

}  // namespace cpufree::triggered
