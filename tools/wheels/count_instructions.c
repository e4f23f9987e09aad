/* A plugin of qemu-user that counts the instructions of an emulated program, and prints how many
   there have been whenever that calls getppid. Declarations as in qemu-plugin.h, version 1 of the
   interface. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))
#define GETPPID 173 /* on 64-bit Arm */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef void on_translation(plugin_id, struct qemu_plugin_tb*);
typedef void on_call(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t, uint64_t);
enum qemu_plugin_op { ADD_U64 };
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, enum qemu_plugin_op, void*,
                                              uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation*);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, on_call*);

EXPORTED int qemu_plugin_version = 1;
static uint64_t count;

static void translated(plugin_id id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &count, qemu_plugin_tb_n_insns(block));
}

static void called(plugin_id id, unsigned processor, int64_t number, uint64_t a, uint64_t b,
                   uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  (void)id, (void)processor, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
  if (number == GETPPID) printf("%" PRIu64 "\n", count), fflush(stdout);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void* info, int arguments, char** argument) {
  (void)info, (void)arguments, (void)argument;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  return 0;
}
