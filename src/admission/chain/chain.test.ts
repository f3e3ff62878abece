import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { alice } from "../../testing/admission/admission-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { AdmissionRequest } from "./attributes.ts";
import { AdmissionChain, type AdmissionContext } from "./chain.ts";
import { AdmissionMetrics } from "./metrics.ts";
import type { AdmissionPlugin } from "./plugin.ts";

const kind = configMapKind as unknown as Kind;

function contextOf(more: Partial<AdmissionContext> = {}): AdmissionContext {
  return {
    kind,
    group: "",
    subresource: "",
    objectKind: { group: "", version: "v1", kind: "ConfigMap", schema: kind.schema },
    namespace: "default",
    name: "",
    dryRun: false,
    user: alice,
    signal: new AbortController().signal,
    warn: () => {},
    annotate: () => {},
    optionsFor: () => undefined,
    ...more,
  };
}

interface Data extends ApiObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** A plugin that adds its name to the object. */
function createMarker(name: string, more: Partial<AdmissionPlugin> = {}): AdmissionPlugin {
  return {
    name,
    handles: ({ operation }) => operation === "CREATE",
    mutate: ({ object }) => ({ ...object, data: { ...(object as Data).data, [name]: "was here" } }) as ApiObject,
    ...more,
  };
}

t.test(
  "AdmissionChain.mutate() runs the plugins in order, each on the object that the previous one left",
  async (t) => {
    const seen: string[] = [];
    const observing = createMarker("b", {
      mutate: ({ object }) => {
        seen.push(Object.keys((object as Data).data ?? {}).join());
        return undefined;
      },
    });
    const chain = new AdmissionChain([createMarker("a"), observing, createMarker("c")]);
    const created: Data = await chain.mutate(contextOf(), "CREATE", { metadata: { name: "x" } } as Data);
    t.same(Object.keys(created.data ?? {}), ["a", "c"]);
    t.same(seen, ["a"]);
    const object = { metadata: { name: "x" } };
    t.equal(await chain.mutate(contextOf(), "UPDATE", object, object), object, "no plugin handles it");
  },
);

t.test("AdmissionChain.mutate() runs all plugins once more if one requests it, and never a third time", async (t) => {
  const calls: string[] = [];
  const createRecorder = (name: string, act: (request: AdmissionRequest) => void = () => {}): AdmissionPlugin =>
    createMarker(name, {
      mutate: (request) => {
        calls.push(`${name}${request.reinvocation.isReinvocation ? " again" : ""}`);
        act(request);
        return undefined;
      },
    });
  const reinvoking = createRecorder("hook", ({ reinvocation }) => {
    reinvocation.pluginState.set("hook", ((reinvocation.pluginState.get("hook") as number | undefined) ?? 0) + 1);
    calls.push(String(reinvocation.pluginState.get("hook")));
    reinvocation.request();
  });
  await new AdmissionChain([createRecorder("first"), reinvoking]).mutate(contextOf(), "CREATE", {});
  t.same(calls, ["first", "hook", "1", "first again", "hook again", "2"]);
});

t.test("AdmissionChain.validate() stops at the first plugin that rejects the request", async (t) => {
  const calls: string[] = [];
  const createChecker = (name: string, why?: string): AdmissionPlugin => ({
    name,
    handles: () => true,
    validate: () => {
      calls.push(name);
      if (why !== undefined) throw new Error(why);
    },
  });
  const chain = new AdmissionChain([createChecker("a"), createChecker("b", "no"), createChecker("c")]);
  await t.rejects(async () => chain.validate(contextOf(), "DELETE", undefined, {}), { message: "no" });
  t.same(calls, ["a", "b"]);
});

t.test("AdmissionChain calls handles() of a plugin once for each operation and resource", async (t) => {
  let calls = 0;
  const plugin = createMarker("a", {
    handles: (attributes) => {
      calls++;
      return attributes.kind.plural === "configmaps";
    },
  });
  const chain = new AdmissionChain([plugin]);
  for (let i = 0; i < 3; i++) await chain.mutate(contextOf(), "CREATE", {});
  await chain.mutate(contextOf({ kind: podKind as unknown as Kind }), "CREATE", {});
  await chain.mutate(contextOf({ subresource: "status" }), "UPDATE", {}, {});
  t.equal(calls, 3);
});

t.test("AdmissionRequest has the name of a new object, and a namespace is in itself", async (t) => {
  const seen: string[] = [];
  const observing = createMarker("a", {
    handles: () => true,
    mutate: ({ namespace, name }) => {
      seen.push(`${namespace}/${name}`);
      return undefined;
    },
  });
  const chain = new AdmissionChain([observing]);
  const namespaces = { ...kind, plural: "namespaces", namespaced: false };
  await chain.mutate(contextOf(), "CREATE", { metadata: { name: "web" } });
  await chain.mutate(contextOf(), "CREATE", { metadata: { generateName: "web-" } });
  await chain.mutate(contextOf({ name: "web" }), "DELETE", undefined, {});
  await chain.mutate(contextOf({ kind: namespaces, namespace: "" }), "CREATE", { metadata: { name: "ns" } });
  await chain.mutate(contextOf({ kind: namespaces, namespace: "", name: "ns" }), "DELETE", undefined, {});
  t.same(seen, ["default/web", "default/", "default/web", "ns/ns", "ns/ns"]);
});

t.test("AdmissionChain records durations of steps and plugins by rejection, except those of guards", async (t) => {
  const registry = new MetricRegistry();
  const rejecting = createMarker("late", {
    validate: async () => {
      throw new Error("no");
    },
  });
  const chain = new AdmissionChain([createMarker("early"), rejecting], new AdmissionMetrics(registry, new FakeClock()));
  const guarded = chain.withGuard(createMarker("guard"));
  await guarded.mutate(contextOf(), "CREATE", {});
  await t.rejects(async () => guarded.validate(contextOf(), "CREATE", {}), { message: "no" });
  const counts = registry.collect().flatMap((family) =>
    family.series().map((series) => {
      const { values, counts } = series as unknown as { values: readonly string[]; counts: Float64Array };
      return `${family.options.name.replace(/apiserver_admission_|_admission_duration_seconds/g, "")} ${values} ${counts[0]}`;
    }),
  );
  t.same(counts, [
    "controller early,admit,CREATE,false 1",
    "controller late,admit,CREATE,false 1",
    "controller late,validate,CREATE,false 0",
    "controller late,validate,CREATE,true 1",
    "step admit,CREATE,false 1",
    "step validate,CREATE,false 0",
    "step validate,CREATE,true 1",
  ]);
});
