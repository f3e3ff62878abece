/** State files after a loss of power: empty, cut off at any byte, full of zeros, or with a byte changed. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { EvictionRecords } from "../eviction/eviction-records.ts";
import { readClaimCheckpoint, writeClaimCheckpoint } from "./claims/claim-checkpoint.ts";
import { CpuSet } from "./cpu/cpu-set.ts";
import { openCpuState } from "./cpu/cpu-state.ts";
import { readDeviceCheckpoint, writeDeviceCheckpoint } from "./devices/device-checkpoint.ts";
import { openMemoryState } from "./memory/memory-state.ts";

interface StateFile {
  readonly write: (path: string) => Promise<void>;
  readonly read: (path: string) => Promise<unknown>;
  /** Of the error for each damaged file. */
  readonly message: RegExp;
}

function managerMessage(manager: string): RegExp {
  const advice = `please drain this node and delete the ${manager} manager checkpoint file ".+" before restarting Kubelet`;
  return new RegExp(`^could not restore state from checkpoint: .+, ${advice}$`, "s");
}

const corrupt =
  /^(?:checkpoint is corrupted|unexpected end of JSON input|invalid JSON: .+|json: cannot unmarshal .+)$/s;
const table = { total: 8, systemReserved: 1, allocatable: 7, reserved: 2, free: 5 };

const files: Readonly<Record<string, StateFile>> = {
  cpu_manager_state: {
    async write(path) {
      const state = await openCpuState(path, "static");
      state.setShared(CpuSet.parse("0,2-3"));
      state.set("pod", "c", CpuSet.parse("1"));
      await state.flush();
    },
    read: (path) => openCpuState(path, "static"),
    message: managerMessage("CPU"),
  },
  memory_manager_state: {
    async write(path) {
      const state = await openMemoryState(path, "Static");
      state.setShared({ 0: { numberOfAssignments: 1, memoryMap: { memory: table }, cells: [0] } });
      state.set("pod", "c", [{ numaAffinity: [0], type: "memory", size: 2 }]);
      await state.flush();
    },
    read: (path) => openMemoryState(path, "Static"),
    message: managerMessage("memory"),
  },
  kubelet_internal_checkpoint: {
    async write(path) {
      const devices = new Map([[0, ["g0"]]]);
      const entry = { uid: "pod", container: "c", resource: "example.com/gpu", devices, response: Buffer.from("ab") };
      await writeDeviceCheckpoint(path, { entries: [entry], registered: { "example.com/gpu": ["g0", "g1"] } });
    },
    read: readDeviceCheckpoint,
    message: corrupt,
  },
  dra_manager_state: {
    async write(path) {
      const devices = [{ requestNames: ["r"], poolName: "p", deviceName: "d", cdiDeviceIds: ["x/y=z"] }];
      const drivers = new Map([["gpu.example.com", devices]]);
      await writeClaimCheckpoint(path, [{ uid: "u", name: "n", namespace: "ns", pods: new Set(["pod"]), drivers }]);
    },
    read: readClaimCheckpoint,
    message: corrupt,
  },
};

function* damage(whole: Buffer): Generator<readonly [what: string, bytes: Buffer]> {
  for (let length = 0; length < whole.length; length++) yield [`cut off at ${length}`, whole.subarray(0, length)];
  yield ["zeros", Buffer.alloc(whole.length)];
  yield ["zeros at the end", Buffer.concat([whole.subarray(0, whole.length / 2), Buffer.alloc(whole.length / 2)])];
  yield ["another value", Buffer.from("null")];
  yield ["a list", Buffer.from("[]")];
  const changed = Buffer.from(whole);
  const uid = whole.indexOf("pod");
  changed[uid] = (changed[uid] ?? 0) ^ 1;
  yield ["another byte", changed];
}

for (const [name, { write, read, message }] of Object.entries(files)) {
  t.test(`${name}: each damage is found, and the file is left for the operator`, async (t) => {
    const path = join(t.testdir(), name);
    await write(path);
    const whole = readFileSync(path);
    await t.resolves(read(path));
    for (const [what, bytes] of damage(whole)) {
      writeFileSync(path, bytes);
      const found = await read(path).then(
        () => "no error",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      if (!message.test(found)) t.fail(`${what}: ${found}`);
      if (!readFileSync(path).equals(bytes)) t.fail(`${what}: the file was changed`);
    }
    writeFileSync(path, whole);
    await t.resolves(read(path), "whole again");
  });
}

t.test("evictions.json: the agent starts without what cannot be read", async (t) => {
  const rootDir = t.testdir();
  const records = await EvictionRecords.open(rootDir, silentLogger);
  await records.add({ uid: "pod", message: "low", graceSeconds: 1, annotations: { a: "b" } });
  const path = join(rootDir, "evictions.json");
  const whole = readFileSync(path);
  t.equal((await EvictionRecords.open(rootDir, silentLogger)).isInterrupted("pod"), true);
  for (const [what, bytes] of damage(whole)) {
    writeFileSync(path, bytes);
    const { all } = await EvictionRecords.open(rootDir, silentLogger);
    if (all.length > 0 && !what.startsWith("another byte") && bytes.length < whole.length - 1) t.fail(what);
  }
});
