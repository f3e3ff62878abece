import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../std/clock.ts";
import { missing, startPrivateContainerd } from "./private-containerd.ts";
import { runtimeConformance } from "./runtime/conformance.ts";
import { createCriClient } from "./runtime/cri.ts";

const lacking = await missing();
if (lacking.length > 0) {
  console.log(`# a real containerd cannot run here (missing: ${lacking.join(", ")}): its checks are left out`);
} else {
  t.test("createCriClient() keeps the promises of the runtime seam over containerd", async (t) => {
    await using containerd = await startPrivateContainerd();
    using cri = createCriClient({ endpoint: containerd.endpoint, requestTimeoutMs: 60_000, clock: systemClock });
    const logDirectory = join(containerd.directory, "logs");
    await runtimeConformance(t, {
      runtime: cri.runtime,
      images: cri.images,
      image: containerd.image,
      sleeper: { name: "sleeper", command: ["sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"] },
      failing: { name: "failing", command: ["sh", "-c", "echo failing; exit 3"] },
      logDirectory,
      pass: (milliseconds) => systemClock.sleep(milliseconds),
    });
    t.match(await readFile(join(logDirectory, "sleeper.log"), "utf8"), / stdout F up\n$/);
  });
}
