import t from "tap";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { fixture } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { get } from "../get.ts";
import type { Scope } from "../scope.ts";
import { applyView, updateView } from "../subresources/view.ts";

const view = deploymentKind.subresources.find(({ name }) => name === "scale")?.view;
if (view === undefined) throw new Error("deployments have no scale");
const labels = { app: "web" };
const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "web:1" }] } };

/** One step: `put m1 3`, `apply m1 3`, `force m1 3`, `apply m1` with an empty spec, `drop m1` without one. */
type Line = string;

/** The managers of the count after each step, or the conflict. A time is shown as `@`, a write through Scale as `/`. */
const STORIES: readonly (readonly [
  title: string,
  created: "tracked" | "untracked",
  steps: readonly [Line, string][],
])[] = [
  [
    "an update takes the count, without a time",
    "tracked",
    [
      ["put m1 3", "Update m1/"],
      ["put m2 4", "Update m2/"],
      ["put m1 4", "Update m2/"],
      ["put m1 0", ""],
      ["put m1 5", ""],
    ],
  ],
  [
    "an update that changes nothing gives the count of another update an entry of its own",
    "tracked",
    [
      ["put m1 2", "Update creator"],
      ["put m1 3", ""],
    ],
  ],
  [
    "an update records nothing while no manager has the count",
    "untracked",
    [
      ["put m1 3", ""],
      ["put m1 3", ""],
    ],
  ],
  [
    "an apply has conflicts with the managers of the count, and shares an equal one",
    "tracked",
    [
      ["apply m1 3", 'conflict with "creator" using autoscaling/v1'],
      ["apply m1 2", "Apply m1/, Update creator"],
      ["force m2 3", "Apply m2/"],
      ["apply m1 5", 'conflict with "m2" with subresource "scale"'],
      ["apply m2 4", "Apply m2/"],
      ["apply m2", "Apply m2/"],
      ["drop m2", ""],
    ],
  ],
  [
    "conflicts with several managers are in the order of their entries",
    "untracked",
    [
      ["force m0 3", "Apply m0/"],
      ["force m1 3", "Apply m0/, Apply m1/"],
      ["apply m2 4", 'conflicts with "m0" with subresource "scale", conflicts with "m1" with subresource "scale"'],
    ],
  ],
  [
    "the first apply meets a count without a manager",
    "untracked",
    [
      ["apply m1 3", 'conflict with "before-first-apply" with subresource "scale" using autoscaling/v1'],
      ["apply m1 2", "Apply m1/, Update before-first-apply/"],
    ],
  ],
];

for (const [title, created, steps] of STORIES) {
  t.test(title, async (t) => {
    await using f = fixture();
    const registry = f.registries.of(deploymentKind);
    const scope: Scope = { ...f.scope(), group: "apps" };
    const spec = { replicas: 2, selector: { matchLabels: labels }, template };
    const object = { metadata: { name: "web" }, spec };
    await create(registry, scope, object, created === "tracked" ? { fieldManager: "creator" } : {});
    const step = async (line: Line): Promise<string> => {
      const [verb = "", fieldManager = "", count] = line.split(" ");
      const spec = count === undefined ? {} : { replicas: Number(count) };
      const sent = { metadata: { name: "web" }, ...(verb === "drop" ? {} : { spec }) };
      const options = { view, fieldManager, subresource: "scale" };
      try {
        if (verb === "put") await updateView(registry, scope, "web", sent, options);
        else {
          const configuration = { apiVersion: "autoscaling/v1", kind: "Scale", ...sent };
          await applyView(registry, scope, "web", configuration, { ...options, force: verb === "force" });
        }
      } catch (error) {
        const conflicts = (error as Error).message.match(/conflicts? with .*?(?=:)/g);
        return conflicts?.join(", ") ?? String(error);
      }
      const { object } = await get(registry, scope, "web");
      const entries = object.metadata?.managedFields ?? [];
      const ofCount = entries.filter(({ fieldsV1 }) => JSON.stringify(fieldsV1).includes("f:replicas"));
      return ofCount
        .map((entry) => {
          const { operation, manager, subresource, time } = entry;
          return `${operation} ${manager}${subresource ? "/" : ""}${time === undefined ? "" : "@"}`;
        })
        .join(", ");
    };
    for (const [line, expected] of steps) t.equal(await step(line), expected, line);
  });
}
