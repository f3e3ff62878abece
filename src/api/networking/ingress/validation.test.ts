import t from "tap";
import type { Ingress, IngressSpec } from "./schema.ts";
import { validateIngress } from "./validation.ts";

const backend = { service: { name: "s", port: { number: 80 } } };
const rule = (host: string, path: string, pathType: "Exact" | "Prefix" | "ImplementationSpecific" = "Prefix") => ({
  host,
  http: { paths: [{ path, pathType, backend }] },
});
const found = (spec: IngressSpec, previous?: IngressSpec, annotations = {}) =>
  validateIngress({ metadata: { annotations }, spec }, previous && { spec: previous }).map(({ field }) => field);

t.test("validateIngress() validates paths by their type", async (t) => {
  const cases: readonly (readonly [path: string, type: "Exact" | "ImplementationSpecific", errors: number])[] = [
    ["/a/b", "Exact", 0],
    ["a", "Exact", 1],
    ["a", "ImplementationSpecific", 1],
    ["", "ImplementationSpecific", 0],
    ["/a//b/../c/.", "Exact", 3],
    ["/a//b/../c/.", "ImplementationSpecific", 0],
    ["/a%2Fb", "Exact", 1],
  ];
  for (const [path, type, errors] of cases) {
    t.equal(found({ rules: [rule("", path, type)] }).length, errors, `${type} ${path}`);
  }
});

t.test("validateIngress() accepts errors that the stored ingress has already", async (t) => {
  const wild = { rules: [rule("*.example.com", "relative")] };
  t.same(found(wild), ["spec.rules[0].http.paths[0].path"]);
  t.same(found(wild, wild), []);
  t.same(found({ rules: [rule("example.com", "relative")] }, wild), ["spec.rules[0].http.paths[0].path"]);
  const secret = { defaultBackend: backend, tls: [{ secretName: "Not_A_Name" }] };
  t.same(found(secret), ["spec.tls[0].secretName"]);
  t.same(found(secret, secret), []);
});

t.test("validateIngress() compares the class with the annotation for new ingresses only", async (t) => {
  const spec = { defaultBackend: backend, ingressClassName: "nginx" };
  const annotations = { "kubernetes.io/ingress.class": "other" };
  t.same(found(spec, undefined, annotations), ["annotations.kubernetes.io/ingress.class"]);
  t.same(found(spec, spec, annotations), []);
  t.same(found(spec, undefined, { "kubernetes.io/ingress.class": "nginx" }), []);
});

t.test("validateIngress() requires one backend with a port name or number", async (t) => {
  const both: Ingress["spec"] = { defaultBackend: { ...backend, resource: { kind: "B", name: "b" } } };
  t.same(found(both), ["spec.defaultBackend"]);
  const ports = [{}, { name: "web", number: 80 }].map((port) =>
    found({ defaultBackend: { service: { name: "s", port } } }),
  );
  t.same(ports, [["spec.defaultBackend"], ["spec.defaultBackend"]]);
});
