import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { EvictionRecord } from "../../eviction/eviction-records.ts";
import type { Termination } from "../../pods/worker/pod-termination.ts";
import { enforceSizeLimits, measureDiskUsage } from "./size-limits.ts";

const MI = 1024 * 1024;

function podOf(name: string, emptyDir: object): Pod {
  return {
    metadata: { name, namespace: "default", uid: name },
    spec: { containers: [{ name: "c" }], volumes: [{ name: "v", emptyDir }] },
  };
}

t.test("enforceSizeLimits() evicts pods over their limits once, and no others", async (t) => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const ended: { readonly name: string | undefined; readonly termination: Termination }[] = [];
  const events: string[] = [];
  const recorded: EvictionRecord[] = [];
  const signals: string[] = [];
  const used: Record<string, number> = {
    over: 5 * MI + 1,
    within: 5 * MI,
    memory: 9 * MI,
    endless: 9 * MI,
    unlimited: MI,
  };
  const pods = [
    podOf("over", { sizeLimit: "5120Ki" }),
    podOf("within", { sizeLimit: "5Mi" }),
    podOf("memory", { sizeLimit: "5Mi", medium: "Memory" }),
    podOf("endless", {}),
    podOf("unmade", { sizeLimit: "5Mi" }),
    podOf("unlimited", { sizeLimit: "0" }),
  ].map((pod) => ({
    pod,
    terminate: (termination: Termination) => void ended.push({ name: pod.metadata?.name, termination }),
  }));
  const running = enforceSizeLimits({
    findExcess: async () => undefined,
    onEvicted: (signal) => signals.push(signal),
    pods: () => pods,
    volumes: { path: (pod) => pod.metadata?.name ?? "" },
    records: { add: async (record) => void recorded.push(record) },
    events: {
      recordPodEvent: (_pod, type, reason, text, options) => {
        events.push([type, reason, text, recorded.length, options?.name].join(" "));
      },
      recordContainerEvent: () => undefined,
    },
    clock,
    log: silentLogger,
    async measureUsage(directory) {
      const found = used[directory];
      if (found === undefined) throw new Error("nothing there");
      return found;
    },
    signal: stop.signal,
  });
  await clock.advance(60_000);
  const message = 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". ';
  t.same(ended, [{ name: "over", termination: { graceSeconds: 1, failure: { reason: "Evicted", message } } }]);
  t.same(signals, ["emptydirfs.limit"]);
  t.match(events, [/^Warning Evicted Usage of EmptyDir volume "v" exceeds the limit "5Mi"\. {2}1 over\.[0-9a-f]{16}$/]);
  t.same(recorded, [{ uid: "over", message, graceSeconds: 1, isDisruption: false }], "recorded before it is reported");
  stop.abort();
  await running;
});

t.test("measureDiskUsage() returns bytes on disk", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-usage-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const before = await measureDiskUsage(directory);
  await writeFile(join(directory, "file"), Buffer.alloc(MI));
  t.ok((await measureDiskUsage(directory)) - before >= MI);
  await t.rejects(measureDiskUsage(join(directory, "absent")));
});
