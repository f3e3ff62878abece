import t from "tap";
import { decode } from "../../../schema/decode/decode.ts";
import type { FieldError } from "../../../schema/validation/field-error.ts";
import { runSteps } from "../../../std/async/steps.ts";
import { definitionOf, widgets } from "../../../testing/api/definition-fixture.ts";
import type { ApiObject, Kind } from "../../kind.ts";
import { createCustomKind } from "./kind.ts";

/** Decodes an object as the server does. */
function read(kind: Kind, body: object): ApiObject {
  return decode(kind.schema, { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a" }, ...body })
    .value as ApiObject;
}

function validate(kind: Kind, object: ApiObject): readonly FieldError[] {
  const { validateInSteps } = kind.strategy;
  if (validateInSteps === undefined) throw new Error("it does not validate in steps");
  return runSteps(validateInSteps(object));
}

t.test("createCustomKind() has the status and scale subresources of the definition", async (t) => {
  const counted = { type: "object", properties: { replicas: { type: "integer" }, labels: { type: "string" } } };
  const kind = createCustomKind(
    widgets(
      { spec: counted, status: counted },
      {
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.labels",
          },
        },
      },
    ),
    "v1",
  );
  t.same(
    kind.subresources.map(({ name }) => name),
    ["status", "scale"],
  );
  const object = { metadata: { name: "a" }, spec: { replicas: 2 }, status: { replicas: 1, labels: "a=b" } };
  const scale = kind.subresources[1]?.view;
  t.match(scale?.toView(object), { spec: { replicas: 2 }, status: { replicas: 1, selector: "a=b" } });
  t.match(scale?.fromView(object, { spec: { replicas: 7 } } as ApiObject), {
    spec: { replicas: 7 },
    status: { replicas: 1 },
  });
  t.match(validate(kind, { ...object, spec: { replicas: -1 } } as ApiObject), [
    { field: ".spec.replicas", detail: "should be a non-negative integer" },
  ]);
  t.notOk("status" in (kind.strategy.prepareForCreate?.(object, "") ?? {}));
  const status = kind.subresources[0]?.strategy;
  const sent = { metadata: { name: "a", labels: { x: "y" } }, spec: { replicas: 9 }, status: { replicas: 3 } };
  t.match(status?.prepareForUpdate(sent, object, ""), { spec: { replicas: 2 }, status: { replicas: 3 } });
});

t.test("createCustomKind() converts between versions and uses accepted names", async (t) => {
  const schema = (more: object) => ({
    openAPIV3Schema: {
      type: "object",
      properties: { spec: { type: "object", properties: { a: { type: "string" }, ...more } } },
    },
  });
  const definition = definitionOf({ schema: schema({}) }, { schema: schema({ b: { type: "integer", default: 1 } }) });
  const accepted = { ...definition, status: { acceptedNames: { ...definition.spec.names, shortNames: ["wd"] } } };
  const kind = createCustomKind(accepted, "v2");
  t.same(kind.shortNames, ["wd"]);
  t.equal(kind.conversion?.storageKind.version, "v1");
  t.same(kind.conversion?.fromStorage({ spec: { a: "x", c: 2 } } as ApiObject), { spec: { a: "x", b: 1 } });
  t.throws(() => createCustomKind(definition, "v3"), RangeError);
});

t.test("createCustomKind() validates embedded resources", async (t) => {
  const template = {
    type: "object",
    "x-kubernetes-embedded-resource": true,
    "x-kubernetes-preserve-unknown-fields": true,
  };
  const kind = createCustomKind(widgets({ spec: { type: "object", properties: { template } } }), "v1");
  const object = read(kind, {
    spec: { template: { kind: "bad kind", metadata: { labels: { "a b": "c" } }, data: 1 } },
  });
  t.match(object, { spec: { template: { data: 1 } } });
  const errors = validate(kind, object);
  t.same(
    errors.map(({ type, field }) => `${type} ${field}`),
    [
      "FieldValueRequired spec.template.apiVersion",
      "FieldValueInvalid spec.template.kind",
      "FieldValueInvalid spec.template.metadata.labels",
    ],
  );
  const metadata = { name: "Not_A_Subdomain", finalizers: ["qualified"] };
  const lenient = read(kind, { spec: { template: { apiVersion: "v1", kind: "Pod", metadata } } });
  t.same(validate(kind, lenient), [], "any path segment is a name, any qualified name a finalizer");
});

t.test("the warning of a deprecated version names the newest version that is newer, served and not deprecated", (t) => {
  const names = ["v1alpha1", "v1beta1", "v1", "v2alpha1", "v2", "v3"];
  const definition = definitionOf(
    ...names.map((name) => ({ name, storage: name === "v1", served: name !== "v3", deprecated: name !== "v1" })),
  );
  const warning = (version: string): string | undefined => createCustomKind(definition, version).deprecation;
  t.equal(warning("v1beta1"), "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget");
  t.equal(warning("v2alpha1"), "example.com/v2alpha1 Widget is deprecated; use example.com/v1 Widget");
  t.equal(warning("v2"), "example.com/v2 Widget is deprecated");
  t.equal(warning("v1"), undefined);
  t.end();
});
