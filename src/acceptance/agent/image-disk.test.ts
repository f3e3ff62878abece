/** Pressure on the file system of images, which is a small file mounted by a loop device. */
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import {
  createAgentConfig,
  findMissing,
  type PrivateContainerd,
  startPrivateContainerd,
} from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { ociArchive } from "../../up/images/oci-archive.ts";

const run = promisify(execFile);
const MI = 2 ** 20;
const DISK = 256 * MI;
/** In the content store and unpacked. */
const UNUSED = 30 * MI;

const missing = await findMissing();
const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

/** Mounts the file system where containerd will store images and containers. */
function mountDisk(directory: string): undefined {
  const [file, root] = [join(directory, "disk.img"), join(directory, "root")];
  execFileSync("truncate", ["-s", String(DISK), file]);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", file]);
  mkdirSync(root);
  execFileSync("mount", ["-o", "loop", file, root]);
}

async function importUnused({ directory, socket }: PrivateContainerd): Promise<void> {
  const archive = join(directory, "unused.tar");
  const files = [{ path: "data", data: randomBytes(UNUSED) }];
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  writeFileSync(archive, ociArchive({ name: "localhost/unused:1", architecture, files, command: ["/data"] }));
  await run("ctr", ["--address", socket, "-n", "k8s.io", "images", "import", archive]);
}

t.test(
  "unused images go first, then the pod that fills the disk, and no other",
  { skip, timeout: 180_000 },
  async (t) => {
    await using containerd = await startPrivateContainerd([], true, mountDisk);
    await importUnused(containerd);
    const base = createAgentConfig(containerd, join(containerd.directory, "agent"));
    mkdirSync(join(containerd.directory, "agent"));
    const config: AgentConfig = {
      ...base,
      eviction: { ...base.eviction, hard: { "imagefs.available": "100Mi" }, transitionMs: 2_000 },
      garbage: {
        ...base.garbage,
        sandboxImage: "localhost/pause:1",
        images: { ...base.garbage.images, highPercent: 100, minAgeMs: 0 },
      },
      server: { ...base.server, enabled: false },
    };
    const lines: string[] = [];
    const sink = { write: (line: string) => void lines.push(line), flushSync: () => undefined };
    const log = createLogger({ verbosity: 2 } as never, { clock: systemClock, stdout: sink, stderr: sink } as never);
    const api = new FakeApi();
    const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;
    const put = (name: string, line: string): void => {
      const container = { name: "c", image: containerd.image, imagePullPolicy: "Never", command: ["sh", "-c", line] };
      const metadata = { name, namespace: "default" };
      api.put(path(name), { kind: "Pod", metadata, spec: { nodeName: "n1", containers: [container] } });
    };
    const statusOf = (name: string) => (api.objects.get(path(name)) as Pod | undefined)?.status ?? {};
    const images = async (): Promise<string> =>
      (await run("ctr", ["--address", containerd.socket, "-n", "k8s.io", "images", "ls", "-q"])).stdout;
    const agent = await startAgent(config, { clock: systemClock, log, transport: api.transport });
    const idle = "trap exit TERM; while :; do sleep 0.2; done";
    const write = (name: string, megabytes: number): string =>
      `busybox dd if=/dev/urandom of=/${name} bs=1M count=${megabytes}`;
    try {
      await agent.ready();
      put("quiet", idle);
      await until("the first pod runs", () => statusOf("quiet").phase === "Running", { timeoutMs: 30_000 });
      t.match(await images(), /localhost\/unused:1/);
      // Below the threshold with the unused image, above it without.
      put("greedy", `${write("a", 60)}; sleep 15; ${write("b", 60)}; ${idle}`);
      await until("the image is removed", async () => !(await images()).includes("unused"), { timeoutMs: 60_000 });
      await until("its log line", () => lines.some((line) => line.includes("without evicting pods")));
      t.ok(lines.some((line) => /Removing image to free bytes.*localhost\/unused:1/.test(line)));
      t.equal(statusOf("greedy").phase, "Running");
      await until("the eviction", () => statusOf("greedy").phase === "Failed", { timeoutMs: 60_000 });
      const message = /^The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: /;
      t.match(statusOf("greedy"), { reason: "Evicted", message });
      await until(
        "its writable layer is removed",
        () => lines.some((line) => line.includes("Removing dead container")),
        {
          timeoutMs: 30_000,
        },
      );
      await until(
        "the end of the pressure",
        () => lines.some((line) => /conditions changed.*nodeConditions=\[\]/.test(line)),
        {
          timeoutMs: 30_000,
        },
      );
      t.equal(statusOf("quiet").phase, "Running");
      t.match(statusOf("greedy"), { containerStatuses: [{ state: { terminated: {} } }] }, "its status stays");
      t.match(await images(), /localhost\/bb:1/, "images in use stay");
    } finally {
      await agent.close({ stopPods: true });
    }
  },
);
