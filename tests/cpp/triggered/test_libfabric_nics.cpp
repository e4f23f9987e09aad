// Triggered operations of libfabric over loopback, by both ways of asking for them: the same
// scripts and programs as for every back end.
#include "cpufree/triggered/nics/libfabric/nics.hpp"
#include "nics_rig.hpp"
#include "wrong_places.hpp"

using namespace cpufree;
using namespace nics_rig;

namespace {

auto with(nics::FabricCalls calls) {
  return [calls](const NicsConfig& config) { return nics::make_libfabric_nics(config, calls); };
}

template <class F>
void for_each_way(F&& test) {
  for (const auto calls : {nics::FabricCalls::triggered, nics::FabricCalls::work_queue})
    test(with(calls));
}

}  // namespace

TEST(provider_agrees_with_the_rules_on_every_script) {
  for_each_way([](auto make) { check_scripts(make, 1); });
}

TEST(puts_over_loopback_deliver_every_payload) {
  for_each_way([](auto make) { CHECK_EQ(wrong_in_ring(make, 2, 2, 64, 40), 0); });
}

TEST(get_over_loopback_brings_what_another_pe_has) {
  for_each_way([](auto make) { check_get(make); });
}

TEST(wrong_places_are_refused_and_no_byte_changes) {
  for_each_way([](auto make) { wrong_places::check_wrong_places(make, 200, true); });
}

TEST(operations_that_never_fired_do_not_keep_the_provider) {
  for_each_way([](auto make) {
    Memory memory({2, 1, 8, 1, 1}, 8);
    const std::unique_ptr<Nics> nics = make(memory.config());
    memory.add_buffers(*nics);
    TriggerOperation put;
    put.pe = 1;
    put.source = memory.source.offset;
    put.target = memory.target.offset;
    put.bytes = 8;
    nics->post(0, put);
    const NicReport report = nics->stop();
    CHECK_EQ(report.waiting.size(), std::size_t{1});
  });
}
