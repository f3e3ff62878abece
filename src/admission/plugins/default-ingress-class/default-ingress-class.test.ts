import t from "tap";
import { ingressKind } from "../../../api/networking/ingress/kind.ts";
import { ingressClassKind } from "../../../api/networking/ingress-class/kind.ts";
import { pluginDeps, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { defaultIngressClass } from "./default-ingress-class.ts";

const createClass = (name: string, annotation: string, second = 0) => ({
  metadata: {
    name,
    annotations: { [annotation]: "true" },
    creationTimestamp: `2026-01-01T00:00:0${second}Z`,
  },
});

t.test("defaultIngressClass() sets the newest default class on an ingress without a class", async (t) => {
  const annotation = "ingressclass.kubernetes.io/is-default-class";
  const plugin = defaultIngressClass(pluginDeps([[ingressClassKind, createClass("main", annotation)]]));
  const classNameOf = async (ingress: object) =>
    (await runPlugin(plugin, ingressKind, { metadata: { name: "i" }, ...ingress } as never)).object.spec
      ?.ingressClassName;
  t.equal(await classNameOf({ spec: {} }), "main");
  t.equal(await classNameOf({ spec: { ingressClassName: "mine" } }), "mine");
  const annotations = { "kubernetes.io/ingress.class": "mine" };
  t.equal(await classNameOf({ metadata: { name: "i", annotations }, spec: {} }), undefined);
});
