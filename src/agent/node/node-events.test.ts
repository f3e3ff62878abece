import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { type MachineFacts, recordMachineEvents, SchedulableEvents } from "./node-events.ts";

t.test("recordMachineEvents() records problems of the machine that affect pods", async (t) => {
  const directory = t.testdir();
  const record = async (facts: Partial<MachineFacts>) => {
    const events: string[] = [];
    const calm = { cgroupV1: false, swapEnabled: false, supportsNoswap: false, resolvConf: "", clusterDomain: "" };
    await recordMachineEvents({ ...calm, ...facts }, (...event) => events.push(event.join(" ")));
    return events;
  };
  const file = (text: string) => {
    const path = join(directory, "resolv.conf");
    writeFileSync(path, text);
    return path;
  };
  t.same(await record({}), []);
  t.match(await record({ cgroupV1: true }), [/^Warning CgroupV1 cgroup v1 support is in maintenance mode/]);
  t.match(await record({ swapEnabled: true }), [/^Warning PossibleMemoryBackedVolumesOnDisk /]);
  t.same(await record({ swapEnabled: true, supportsNoswap: true }), []);
  const resolvers: readonly (readonly [string, RegExp | undefined])[] = [
    ["search a.example b.example", undefined],
    [`search ${"a.b ".repeat(33)}`, /more than 32 domains!$/],
    [`search ${"a".repeat(254)}`, /a search path which length is more than allowed 253 chars!$/],
    [`search ${`${"a".repeat(100)} `.repeat(21)}`, /search line which length is more than allowed 2048 chars!$/],
  ];
  for (const [text, expected] of resolvers) {
    t.match(await record({ resolvConf: file(text) }), expected === undefined ? [] : [expected], text.slice(0, 20));
  }
  const many = { resolvConf: file(`search ${"a.b ".repeat(30)}`), clusterDomain: "cluster.local" };
  t.match(await record(many), [/more than 29 domains!$/]);
  const absent = join(directory, "absent");
  t.same(await record({ resolvConf: absent }), [
    `Warning CheckLimitsForResolvConf open ${absent}: no such file or directory`,
  ]);
});

t.test("SchedulableEvents records changes only", async (t) => {
  const events: string[] = [];
  const schedulable = new SchedulableEvents((...event) => events.push(event.join(" ")));
  const metadata = { name: "n1" };
  for (const unschedulable of [undefined, false, true, true, undefined]) {
    schedulable.nodeChanged({ metadata, spec: unschedulable === undefined ? {} : { unschedulable } });
  }
  t.same(events, [
    "Normal NodeNotSchedulable Node n1 status is now: NodeNotSchedulable",
    "Normal NodeSchedulable Node n1 status is now: NodeSchedulable",
  ]);
});
