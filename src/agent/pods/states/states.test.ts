import { globSync, readFileSync } from "node:fs";
import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { podStates } from "./states.ts";

t.test("states declare the transitions that the diagram in docs/ shows", async (t) => {
  const pages = globSync(new URL("../../../../docs/*.md", import.meta.url).pathname).map((page) =>
    readFileSync(page, "utf8"),
  );
  const diagram = /```mermaid\nstateDiagram-v2\n([^`]*)```/.exec(pages.join("\n"))?.[1] ?? "";
  const drawn = [...diagram.matchAll(/^ *(\S+) --> ([^\s:]+)/gm)].map(([, from, to]) => `${from} --> ${to}`);
  const declared = Object.values(podStates).flatMap(({ name, successors }) =>
    // The diagram leaves out repetitions of the same state.
    successors.filter((to) => to !== name).map((to) => `${name} --> ${to === "gone" ? "[*]" : to}`),
  );
  t.same(declared.concat("[*] --> admitting").sort(), drawn.sort());
});

t.test("states lists each state under its own name", async (t) => {
  for (const [key, { name }] of Object.entries(podStates)) t.equal(name, key);
});

t.test("a pod that the node rejects has no status but the one of its rejection", async (t) => {
  await using harness = await podHarness();
  Object.assign(harness.services.admission as object, { admit: async () => ({ reason: "OutOfcpu", message: "no" }) });
  harness.manager.put(testPod("web"));
  await harness.run(2);
  const rejected = { phase: "Failed", reason: "OutOfcpu", message: "Pod was rejected: no" };
  t.ok(harness.statuses.length > 0);
  for (const { status } of harness.statuses) t.match(status, { ...rejected, containerStatuses: undefined });
});
