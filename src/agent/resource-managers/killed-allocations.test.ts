/** An agent that ends at each step of an allocation: the next one completes it, and nothing is allocated twice. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { fakeMachines, writeFakeMachine } from "../../testing/agent/fake-machine.ts";
import { pinnedConfig } from "../../testing/agent/manager-config.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { emptyObservation } from "../runtime/observation.ts";
import { ResourceManagers } from "./resource-managers.ts";
import { readMachineTopology } from "./topology/machine-topology.ts";

const GIB = 2 ** 30;
const CPU = "cpu_manager_state";
const MEMORY = "memory_manager_state";

function makePod(name: string, ...cpus: readonly string[]): Pod {
  const containers = cpus.map((cpu, index) => {
    const list = { cpu, memory: "512Mi" };
    return { name: `c${index}`, resources: { limits: list, requests: list } };
  });
  return { metadata: { name, uid: name }, spec: { containers } };
}

/** The files are written in this order, container by container: each list has those that are written at the end. */
const steps: readonly (readonly string[])[] = [[], [CPU], [CPU, MEMORY]];

t.test("an allocation that was interrupted is completed with the same CPUs and memory", async (t) => {
  const directory = t.testdir();
  const sysRoot = join(directory, "sys");
  await writeFakeMachine(sysRoot, { ...fakeMachines.dualSocketHt, memoryGib: 4 });
  const machine = await readMachineTopology(sysRoot, GIB);
  const open = async (rootDir: string) => {
    const pods: Pod[] = [];
    const managers = await ResourceManagers.open({
      config: pinnedConfig("single-numa-node"),
      rootDir,
      machine,
      reservation: { cpu: "1", memory: "1Gi" },
      runtime: { updateContainerResources: async () => ({}) },
      activePods: () => pods.map((pod) => ({ pod, observation: emptyObservation })),
      runningPods: () => [],
      onDevicesChange: () => {},
      registry: new MetricRegistry(),
      clock: new FakeClock(),
      log: silentLogger,
    });
    const admit = async (pod: Pod): Promise<readonly string[]> => {
      pods.push(pod);
      t.equal(await managers.admit(pod), undefined, `${pod.metadata?.name} is admitted`);
      const assigned = (pod.spec?.containers ?? []).map((container) => managers.getAssignment(pod, container));
      return (await Promise.all(assigned)).map(({ cpusetCpus, cpusetMems }) => `${cpusetCpus} of ${cpusetMems}`);
    };
    return { admit };
  };

  const whole = join(directory, "whole");
  const before = join(directory, "before");
  for (const each of [whole, before]) mkdirSync(each);
  const [neighbour, pod, next] = [makePod("neighbour", "2"), makePod("pod", "2", "1"), makePod("next", "2")];
  const uninterrupted = await open(whole);
  await uninterrupted.admit(neighbour);
  for (const file of [CPU, MEMORY]) copyFileSync(join(whole, file), join(before, file));
  const expected = await uninterrupted.admit(pod);
  const after = await uninterrupted.admit(next);
  t.equal(new Set([...expected, ...after]).size, 3, "different CPUs");

  // The files after the pod, without the next one.
  const reopened = join(directory, "reopened");
  mkdirSync(reopened);
  for (const file of [CPU, MEMORY]) copyFileSync(join(before, file), join(reopened, file));
  const second = await open(reopened);
  await second.admit(neighbour);
  t.same(await second.admit(pod), expected);

  for (const written of steps) {
    const killed = join(directory, `killed-${written.length}`);
    mkdirSync(killed);
    for (const file of [CPU, MEMORY]) {
      copyFileSync(join(written.includes(file) ? reopened : before, file), join(killed, file));
      // The write that was interrupted.
      writeFileSync(join(killed, `${file}.tmp`), readFileSync(join(reopened, file)).subarray(0, 20));
    }
    const restarted = await open(killed);
    await restarted.admit(neighbour);
    t.same(await restarted.admit(pod), expected, `after ${written.join(", ") || "no file"}`);
    t.same(await restarted.admit(next), after, "the next pod gets what is free");
    for (const file of [CPU, MEMORY]) {
      t.equal(readFileSync(join(killed, file), "utf8"), readFileSync(join(whole, file), "utf8"), file);
    }
  }
});
