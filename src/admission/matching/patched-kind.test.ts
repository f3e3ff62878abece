import t from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { StatusError } from "../../api/status.ts";
import type { EquivalentResource } from "./equivalent-resource.ts";
import { checkPatchedKind } from "./patched-kind.ts";

const scheme = builtinScheme();
const { schema } = configMapKind;
const objects = { group: "", version: "v1", kind: "ConfigMap" };
const builtin: EquivalentResource = { ...objects, plural: "configmaps", objects, schema, kind: configMapKind };
const widget = { group: "example.com", version: "v1", kind: "Widget" };
const customKind: Kind = { ...configMapKind, ...widget, plural: "widgets", custom: true };
const custom: EquivalentResource = { ...widget, plural: "widgets", objects: widget, schema, kind: customKind };
const errorOf = (check: () => void): unknown => {
  try {
    check();
  } catch (error) {
    return (error as StatusError).status;
  }
  return undefined;
};
const object = { metadata: { name: "one" }, data: { a: "b" } };

t.test("a patched object of a builtin kind keeps its kind and version, or omits them", async (t) => {
  const cases: readonly [object, RegExp | undefined][] = [
    [{}, undefined],
    [{ kind: "ConfigMap" }, undefined],
    [{ apiVersion: "v1", kind: "" }, undefined],
    [{ kind: null }, undefined],
    [
      { kind: 1 },
      /couldn't get version\/kind; json parse error: json: cannot unmarshal number into Go struct field .kind/,
    ],
    [{ kind: "Foo" }, /no kind "Foo" is registered for version "v1" in scheme "pkg\/api\/legacyscheme\/scheme.go:30"/],
    [{ apiVersion: "apps/v1" }, /no kind "ConfigMap" is registered for version "apps\/v1"/],
    [{ apiVersion: "v2", kind: "ConfigMap" }, /no kind "ConfigMap" is registered for version "v2"/],
    [{ apiVersion: "a/b/c" }, /unexpected GroupVersion string: a\/b\/c/],
    [{ kind: "Pod" }, /strict decoding error: unknown field "data"/],
    [{ kind: "Secret" }, /illegal base64 data at input byte 0/],
    [{ kind: "Secret", data: null }, /converting \(v1.Secret\) to \(core.ConfigMap\): unknown conversion/],
  ];
  for (const [members, message] of cases) {
    const check = () => checkPatchedKind(builtin, { ...object, ...members }, scheme, "report");
    if (message === undefined) t.doesNotThrow(check, JSON.stringify(members));
    else t.match(errorOf(check), { code: 500, message }, JSON.stringify(members));
  }
  const pod = { ...object, kind: "Pod" };
  t.throws(() => checkPatchedKind(builtin, pod, scheme, "drop"), /converting \(v1.Pod\) to \(core.ConfigMap\)/);
});

t.test("a patched custom resource has its kind and version", async (t) => {
  const cases: readonly [object, number, RegExp][] = [
    [{ kind: "Secret" }, 422, /^Secret.example.com "one" is invalid: kind: Invalid value: "Secret": must be Widget/],
    [{ kind: "" }, 500, /Object 'Kind' is missing in '{/],
    [{ kind: undefined }, 500, /Object 'Kind' is missing in '{/],
    [{ kind: 1 }, 500, /json: cannot unmarshal number into Go struct field .kind of type string/],
    [
      { apiVersion: "v2" },
      500,
      /object: \/v2, Kind=Widget is unstructured and is not suitable for converting to "example.com\/v1"/,
    ],
    [{ apiVersion: undefined }, 500, /: \/, Kind=Widget is unstructured/],
    [{ apiVersion: "a/b/c" }, 500, /unexpected GroupVersion string: a\/b\/c/],
  ];
  const whole = { apiVersion: "example.com/v1", kind: "Widget", ...object };
  t.doesNotThrow(() => checkPatchedKind(custom, whole, scheme, "report"));
  for (const [members, code, message] of cases) {
    const patched = JSON.parse(JSON.stringify({ ...whole, ...members })) as object;
    const status = errorOf(() => checkPatchedKind(custom, patched, scheme, "report"));
    t.match(status, { code, message }, JSON.stringify(members));
  }
});
