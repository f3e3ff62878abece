import t from "tap";
import { createPlugins, type PluginDeps } from "../plugins/registry.ts";
import { DEFAULT_PLUGINS } from "./default-plugins.ts";
import { defaultFeatures } from "./features.ts";
import { planProfile } from "./profile.ts";

t.test("the table of plugins has the points that the plugins implement, in their order", async (t) => {
  const handle = { listers: {}, cache: {} } as PluginDeps["handle"];
  const deps: Partial<PluginDeps> = { handle, extenders: [], features: defaultFeatures };
  const created = createPlugins({}, deps as PluginDeps);
  const pointsOf = ({ name, points }: { readonly name: string; readonly points: readonly string[] }) => [
    name,
    // Without the gate the plugin has none.
    name === "DynamicResources" ? [] : [...points].sort(),
  ];
  t.strictSame(DEFAULT_PLUGINS.map(pointsOf).sort(), [...created.values()].map(pointsOf).sort());
});

t.test(
  "a plugin that is enabled at its point again comes first, one that is also disabled there comes last",
  async (t) => {
    const filters = (filter: object) => planProfile("s", { filter }).points.get("filter") ?? [];
    const first = ["NodeUnschedulable", "NodeName"];
    t.strictSame(filters({}).slice(0, 2), first);
    t.strictSame(filters({ enabled: [{ name: "NodePorts" }, { name: "NodeAffinity" }] }).slice(0, 3), [
      "NodePorts",
      "NodeAffinity",
      "NodeUnschedulable",
    ]);
    const moved = filters({ disabled: [{ name: "NodeName" }], enabled: [{ name: "NodeName" }] });
    t.equal(moved[0], "NodeUnschedulable");
    t.equal(moved.at(-1), "NodeName");
    const only = [{ name: "NodeAffinity" }, { name: "NodeName" }];
    t.strictSame(filters({ disabled: [{ name: "*" }], enabled: only }), ["NodeAffinity", "NodeName"]);
  },
);

t.test(
  "the weight of the point counts before that of multiPoint, and an absent weight is 1, not the default",
  async (t) => {
    const weightOf = (plugins: object) => planProfile("s", plugins).weights.get("TaintToleration");
    const again = (weight?: number) => ({ enabled: [{ name: "TaintToleration", ...(weight && { weight }) }] });
    t.equal(weightOf({}), 3);
    t.equal(weightOf({ multiPoint: again(7) }), 7);
    t.equal(weightOf({ multiPoint: again() }), 1);
    t.equal(weightOf({ score: again() }), 1);
    t.equal(weightOf({ score: again(5), multiPoint: again(7) }), 5);
  },
);
