import t from "tap";
import { containerdNodeRuntime } from "../../testing/agent/containerd-node.ts";
import { fakeNodeRuntime } from "../../testing/agent/fake-node.ts";
import { lifecycleSuite } from "../../testing/agent/lifecycle-suite.ts";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";

t.setTimeout(300_000);

t.test("startAgent() runs the pod lifecycle suite on the fake runtime", (t) =>
  lifecycleSuite(t, fakeNodeRuntime, { jobs: 4, short: false }),
);

/** `SVC_LIFECYCLE=all node src/acceptance/agent/lifecycle.test.ts` runs all on containerd, in half a minute. */
const short = process.env.SVC_LIFECYCLE !== "all";
const missing = await findMissing();
if (missing.length > 0) t.comment(`Skipped: containerd needs ${missing.join(", ")}`);
else {
  t.test("startAgent() runs the pod lifecycle suite on containerd", async (t) => {
    await using containerd = await startPrivateContainerd();
    await lifecycleSuite(t, () => containerdNodeRuntime(containerd), { jobs: 4, short });
  });
}
