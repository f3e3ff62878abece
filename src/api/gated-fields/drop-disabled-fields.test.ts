import t from "tap";
import { betaKinds } from "../beta-kinds.ts";
import { builtinKinds } from "../builtin.ts";
import type { ApiObject, Kind } from "../kind.ts";
import { previewKinds } from "../preview-kinds.ts";
import { createDropDisabledFields } from "./drop-disabled-fields.ts";
import { hasField, listFields, parseFieldPath } from "./paths.ts";
import { disabledRules } from "./rules.ts";

const kinds = [...builtinKinds, ...betaKinds, ...previewKinds];
const without = (...gates: readonly string[]) => ({ has: (name: string) => !gates.includes(name) });
const nothing = { has: () => false };

/** An object with just the field: `a[].b` becomes `{ a: [{ b: value }] }`. */
function objectWith(path: string, value: unknown): ApiObject {
  const [first = "", ...rest] = path.split(".");
  const inner = rest.length === 0 ? value : objectWith(rest.join("."), value);
  return first.endsWith("[]") ? { [first.slice(0, -2)]: [inner] } : { [first]: inner };
}

/** Values that count as use of the feature. */
const sampleValue = (path: string): unknown => (path.endsWith("procMount") ? "Unmasked" : "value");

for (const kind of kinds.filter(({ conversion }) => conversion === undefined)) {
  for (const { rule, scope } of disabledRules(kind.group, kind.plural, nothing)) {
    const [gate = ""] = rule.gates;
    const inScope = (path: string): string => (scope === "" ? path : `${scope}.${path}`);
    for (const path of rule.paths.map(inScope)) {
      t.test(`${kind.plural}: ${path} needs ${rule.gates.join(" and ")}`, async (t) => {
        const object = objectWith(path, sampleValue(path));
        const steps = parseFieldPath(path);
        t.equal(createDropDisabledFields(kind, without())?.(object, undefined), undefined, "no gate is off");
        const drop = createDropDisabledFields(kind, without(gate))!;
        const dropped = [...listFields(drop(object, undefined), steps)].map(([, value]) => value);
        t.same(dropped, rule.replacement === undefined ? [] : [rule.replacement]);
        t.same(drop(object, {}), drop(object, undefined), "an update drops it as well");
        if (rule.isUsed !== undefined && !path.endsWith("procMount")) return;
        const before = rule.usedAt === undefined ? object : objectWith(inScope(rule.usedAt[0]!), ["used"]);
        t.equal(drop(object, before), object, "unless the stored object uses the feature");
      });
    }
  }
}

const kindOf = (plural: string): Kind => kinds.find((kind) => kind.plural === plural)!;

t.test("objects that become empty are removed where Go has pointers", async (t) => {
  const drop = createDropDisabledFields(kindOf("pods"), without("ContainerStopSignals", "PodLifecycleSleepAction"))!;
  const container = (lifecycle: object): ApiObject => objectWith("spec.containers[]", { name: "c", lifecycle });
  const bare = objectWith("spec.containers[]", { name: "c" });
  t.strictSame(drop(container({ stopSignal: "SIGTERM" }), undefined), bare);
  t.strictSame(drop(container({ preStop: { sleep: { seconds: 1 } } }), undefined), bare);
  const exec = { postStart: { exec: { command: ["x"] } } };
  t.strictSame(drop(container({ ...exec, stopSignal: "SIGTERM" }), undefined), container(exec));
});

t.test("image volumes are dropped with their mounts", async (t) => {
  const drop = createDropDisabledFields(kindOf("deployments"), without("ImageVolume"))!;
  const path = "spec.template.spec";
  const mount = (name: string) => ({ name, mountPath: `/${name}` });
  const spec = {
    containers: [{ name: "c", volumeMounts: [mount("image"), mount("data")] }],
    volumes: [
      { name: "image", image: { reference: "i" } },
      { name: "data", emptyDir: {} },
    ],
  };
  const kept = { containers: [{ name: "c", volumeMounts: [mount("data")] }], volumes: [spec.volumes[1]] };
  t.same(drop(objectWith(path, spec), undefined), objectWith(path, kept));
  t.same(drop(objectWith(path, spec), objectWith(path, spec)), objectWith(path, spec));
});

t.test("a data source of another namespace is dropped as a whole", async (t) => {
  const drop = createDropDisabledFields(kindOf("persistentvolumeclaims"), without("CrossNamespaceVolumeDataSource"))!;
  const foreign = objectWith("spec.dataSourceRef", { kind: "VolumeSnapshot", name: "s", namespace: "other" });
  t.same(drop(foreign, undefined), { spec: {} });
  t.equal(drop(foreign, foreign), foreign);
  const own = objectWith("spec.dataSourceRef", { kind: "VolumeSnapshot", name: "s" });
  t.equal(drop(own, undefined), own);
});

t.test("an empty text is dropped like any other value", async (t) => {
  const drop = createDropDisabledFields(kindOf("persistentvolumeclaims"), without("VolumeAttributesClass"))!;
  for (const name of ["", "gold"]) {
    t.same(drop(objectWith("spec.volumeAttributesClassName", name), undefined), { spec: {} }, name);
  }
  const stored = objectWith("spec.volumeAttributesClassName", "gold");
  const next = objectWith("spec.volumeAttributesClassName", "");
  t.equal(drop(next, stored), next, "the stored claim has a class");
});

t.test("fields of another version are those of the storage version", async (t) => {
  const hpa = kinds.find(({ plural, version }) => plural === "horizontalpodautoscalers" && version === "v1")!;
  const drop = createDropDisabledFields(hpa, without("HPAConfigurableTolerance"))!;
  const behavior = JSON.stringify({ scaleUp: { tolerance: "0.2", selectPolicy: "Max" } });
  const sent = { metadata: { annotations: { "autoscaling.alpha.kubernetes.io/behavior": behavior } }, spec: {} };
  const kept = drop(sent, undefined).metadata?.annotations?.["autoscaling.alpha.kubernetes.io/behavior"] ?? "";
  t.notMatch(kept, /tolerance/i);
  t.match(kept, /selectPolicy/i);
});

t.test("the defaults of Kubernetes 1.33 drop no field of an ordinary object", async (t) => {
  const drop = createDropDisabledFields(kindOf("pods"), nothing)!;
  const pod = objectWith("spec.containers[]", { name: "c", image: "i", resources: { limits: { cpu: "1" } } });
  t.equal(drop(pod, undefined), pod);
  t.notOk(hasField(pod, parseFieldPath("spec.hostUsers")));
});
