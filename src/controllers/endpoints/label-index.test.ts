import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { InformerHandlers } from "../../client/informer/informer.ts";
import { LabelIndex } from "./label-index.ts";

type Labels = Readonly<Record<string, string>>;

function pod(name: string, labels: Labels, namespace = "default"): Pod {
  return { metadata: { name, namespace, labels } };
}

const many = (count: number): Labels => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));

for (const [what, more] of [
  ["few", {}],
  ["more labels than are indexed", many(1000)],
] as const) {
  t.test(`LabelIndex finds objects by their labels: ${what}`, async (t) => {
    let handlers: InformerHandlers<Pod> = {};
    const informer = {
      subscribe: (given: InformerHandlers<Pod>) => {
        handlers = given;
        return () => {
          handlers = {};
        };
      },
    };
    const index = new LabelIndex(informer, ({ metadata }) => metadata?.labels ?? {});
    const found = (labels: Labels, namespace = "default") =>
      index.withAll(namespace, labels).map(({ metadata }) => metadata?.name);
    const first = pod("a", { app: "x", tier: "1", ...more });
    handlers.put?.(first, undefined);
    handlers.put?.(pod("b", { app: "x" }), undefined);
    handlers.put?.(pod("c", { app: "x", ...more }, "other"), undefined);
    t.same(found({ app: "x" }).sort(), ["a", "b"]);
    t.same(found({ app: "x", tier: "1" }), ["a"]);
    t.same(found({ app: "y" }), []);
    t.same(found({ constructor: "x" }), []);
    t.same(found({}), [], "no labels select nothing");
    t.same(found({ app: "x" }, "other"), ["c"]);
    t.ok(index.withAny("default", { tier: "1", app: "z" }).includes(first));
    const changed = pod("a", { app: "y" });
    handlers.put?.(changed, first);
    t.same(found({ app: "x" }), ["b"]);
    t.same(found({ app: "y" }), ["a"]);
    handlers.put?.(first, changed);
    handlers.delete?.(first);
    t.same(found({ app: "x" }), ["b"]);
    index[Symbol.dispose]();
    t.same(handlers, {});
  });
}
