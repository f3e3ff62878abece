import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { alice } from "../../testing/admission/admission-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { AdmissionChain, type AdmissionContext } from "./chain.ts";
import { AdmissionMetrics } from "./metrics.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";

const kind = configMapKind as unknown as Kind;

function about(more: Partial<AdmissionContext> = {}): AdmissionContext {
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

/** Adds its name to what is written. */
function marking(name: string, more: Partial<AdmissionPlugin> = {}): AdmissionPlugin {
  return {
    name,
    handles: ({ operation }) => operation === "CREATE",
    mutate: ({ object }) => ({ ...object, data: { ...(object as Data).data, [name]: "was here" } }) as ApiObject,
    ...more,
  };
}

t.test("AdmissionChain.mutate() asks in order, each about what the ones before have made", async (t) => {
  const seen: string[] = [];
  const looking = marking("b", {
    mutate: ({ object }) => {
      seen.push(Object.keys((object as Data).data ?? {}).join());
      return undefined;
    },
  });
  const chain = new AdmissionChain([marking("a"), looking, marking("c")]);
  const made: Data = await chain.mutate(about(), "CREATE", { metadata: { name: "x" } } as Data);
  t.same(Object.keys(made.data ?? {}), ["a", "c"]);
  t.same(seen, ["a"]);
  const object = { metadata: { name: "x" } };
  t.equal(await chain.mutate(about(), "UPDATE", object, object), object, "nobody handles it");
});

t.test("AdmissionChain.mutate() asks all once more where one wants it, and never a third time", async (t) => {
  const asked: string[] = [];
  const noting = (name: string, act: (request: AdmissionRequest) => void = () => {}): AdmissionPlugin =>
    marking(name, {
      mutate: (request) => {
        asked.push(`${name}${request.reinvocation.isReinvocation ? " again" : ""}`);
        act(request);
        return undefined;
      },
    });
  const remembering = noting("hook", ({ reinvocation }) => {
    reinvocation.pluginState.set("hook", ((reinvocation.pluginState.get("hook") as number | undefined) ?? 0) + 1);
    asked.push(String(reinvocation.pluginState.get("hook")));
    reinvocation.request();
  });
  await new AdmissionChain([noting("first"), remembering]).mutate(about(), "CREATE", {});
  t.same(asked, ["first", "hook", "1", "first again", "hook again", "2"]);
});

t.test("AdmissionChain.validate() stops at the first that refuses", async (t) => {
  const asked: string[] = [];
  const checking = (name: string, why?: string): AdmissionPlugin => ({
    name,
    handles: () => true,
    validate: () => {
      asked.push(name);
      if (why !== undefined) throw new Error(why);
    },
  });
  const chain = new AdmissionChain([checking("a"), checking("b", "no"), checking("c")]);
  await t.rejects(async () => chain.validate(about(), "DELETE", undefined, {}), { message: "no" });
  t.same(asked, ["a", "b"]);
});

t.test("AdmissionChain asks whether a plugin handles a place once", async (t) => {
  let asked = 0;
  const plugin = marking("a", {
    handles: (attributes) => {
      asked++;
      return attributes.kind.plural === "configmaps";
    },
  });
  const chain = new AdmissionChain([plugin]);
  for (let i = 0; i < 3; i++) await chain.mutate(about(), "CREATE", {});
  await chain.mutate(about({ kind: podKind as unknown as Kind }), "CREATE", {});
  await chain.mutate(about({ subresource: "status" }), "UPDATE", {}, {});
  t.equal(asked, 3);
});

t.test("AdmissionChain tells plugins a new object's own name, and of a namespace that it is in itself", async (t) => {
  const seen: string[] = [];
  const looking = marking("a", {
    handles: () => true,
    mutate: ({ namespace, name }) => {
      seen.push(`${namespace}/${name}`);
      return undefined;
    },
  });
  const chain = new AdmissionChain([looking]);
  const namespaces = { ...kind, plural: "namespaces", namespaced: false };
  await chain.mutate(about(), "CREATE", { metadata: { name: "web" } });
  await chain.mutate(about(), "CREATE", { metadata: { generateName: "web-" } });
  await chain.mutate(about({ name: "web" }), "DELETE", undefined, {});
  await chain.mutate(about({ kind: namespaces, namespace: "" }), "CREATE", { metadata: { name: "ns" } });
  await chain.mutate(about({ kind: namespaces, namespace: "", name: "ns" }), "DELETE", undefined, {});
  t.same(seen, ["default/web", "default/", "default/web", "ns/ns", "ns/ns"]);
});

t.test("AdmissionChain measures steps and plugins by whether they refused; guards are none of them", async (t) => {
  const registry = new MetricRegistry();
  const refusing = marking("late", {
    validate: async () => {
      throw new Error("no");
    },
  });
  const chain = new AdmissionChain([marking("early"), refusing], new AdmissionMetrics(registry, new FakeClock()));
  const guarded = chain.withGuard(marking("guard"));
  await guarded.mutate(about(), "CREATE", {});
  await t.rejects(async () => guarded.validate(about(), "CREATE", {}), { message: "no" });
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
